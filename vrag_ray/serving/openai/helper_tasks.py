"""Chats that a chat client sends for itself: a title for a conversation, tags, follow-up questions, search queries, a
question in full.

Open WebUI begins such a message with ``### Task:``; other clients have words of their own, which name the conversation
as what the title, the summary or the tags are for. They are no questions about documents: no search is made for them,
and no run is recorded. A question to which files are attached begins so in Open WebUI, too, and is a question. Pure.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum

from vrag_ray.policies.extractive.follow_ups import standalone
from vrag_ray.serving.openai.question import MAX_CHARS, MAX_TURN_CHARS, cut, last_user_message
from vrag_ray.serving.openai.requests import ChatCompletionRequest

TITLE_CHARS = 48


class HelperTask(StrEnum):
    """The kinds of task, by the key of the JSON that Open WebUI reads it from."""

    TITLE = "title"
    TAGS = "tags"
    FOLLOW_UPS = "follow_ups"
    QUERIES = "queries"
    COMPLETION = "text"
    IMAGE_PROMPT = "prompt"
    SUMMARY = "summary"
    STANDALONE = "standalone"
    """The last question of the conversation, so that it can be read without the others."""
    OTHER = "other"


_TASK = re.compile(r"\s*#{1,4} Task:", re.IGNORECASE)
_KEY = re.compile(r'"(title|tags|follow_ups|queries|text|prompt)"\s*:')
_IN_SENTENCE = r"(?:\([^()\n]{0,60}\)|\((?![^()\n]{0,60}\))|[^.?!\n(])"
"""A character, or words in brackets, which may have a stop: "(max. 5 words)"."""
_MAKE = (
    r"(?:provide|generate|write|create|make|give|suggest|craft|compose|propose|produce|return|output|find|"
    r"(?:reply|respond|answer) with|come up with|think of|summari[sz]e|condense|turn)\b"
)
_LENGTH = (
    r"(?:(?:at most|up to|under|about|no more than|less than|exactly) )?(?:\d|an?\b|one\b|two\b|few\b|your\b|his\b)"
)
_CONVERSATION = (
    r"\b(?:the|this|our|an?) (?:[\w'\u2019-]+ ){0,2}"
    r"(?:conversation|chat|dialog(?:ue)?|thread|(?<=user's )(?:message|request|query|input)|(?<=our )discussion|"
    r"(?<=this )discussion)(?: (?:history|log|thread|session))?"
    r"(?=\W*$|\s*[^\w\s]|\s*\n|\s+(?:between (?:the|an?|you|us)\b|(?:into|as|with|without|using|below|above|that|so|"
    r"based|and|an?)\b|in " + _LENGTH + r"))"
)
"""The conversation with the client itself; one that the documents are about has words behind it that say which."""
_ORDER = (
    r"(?:^|[.,:;!\n])[-*\s]*(?:please |then )?"
    r"(?:(?:you|your)\b[^.?!,\n]{0,60}\b(?:is to|have to|need to|must|should|will) )?"
)
"""Stands before the verb of an order; a question has its words there."""
_A_TITLE = r"\ban? (?:[\w-]+ ){0,4}(?:title|name|heading)\b"
_SENT = (
    r"(?:the |an? )?(?:\w+ )?user(?:['\u2019]s|s['\u2019]?)? (?:first |last |initial )?"
    r"(?:requests?|messages?|quer(?:y|ies)|inputs?|prompts?|questions?)"
)
"""What a user sends, as a system message speaks of it."""
_OTHER_LANGUAGES = (
    (
        r"erstellen?|erzeugen?|generieren?|schreiben?|formulieren?|gib|vergib|finden?|fassen?|nennen?",
        r"eine[nm]?|als",
        r"titel|namen|überschrift",
        r"(?:dies|unser|d(?:ie|as|en|er|em)\b)\w* (?:\w+ )?(?:unterhaltung|gesprächs?|konversation|chats?|dialogs?|"
        r"gesprächsverlaufs?|chatverlaufs?|nachricht)",
    ),
    (
        r"génère[rz]?|générer|crée[rz]?|créer|écri[st]|donne[rz]?|propose[rz]?|résume[rz]?|résumer|trouve[rz]?",
        r"une?",
        r"titre|nom",
        r"(?:cette|la|notre|ce|du|cet|l['\u2019]) ?(?:conversation|discussion|chat|échange|message)",
    ),
    (
        r"genera|crea|escribe|proporciona|resume|da|sugiere|gere|crie|escreva|forneça|resuma|dê|sugira|scrivi|fornisci|"
        r"riassumi|dai|proponi",
        r"uno?|um",
        r"título|nombre|nome|titolo",
        r"(?:esta|la|nuestra|este|el|desta|da|a|nossa|questa|della|nostra) "
        r"(?:conversación|charla|chat|mensaje|conversa|mensagem|conversazione|discussione)",
    ),
    (r"maak|genereer|schrijf|geef|bedenk", r"een", r"titel|naam", r"(?:dit|deze|het|ons) (?:gesprek|chat|conversatie)"),
)
"""Verbs, articles, titles and conversations of German, French, Spanish with Portuguese and Italian, and Dutch."""


def _title_in(verbs: str, articles: str, titles: str, conversations: str) -> str:
    """An order to make a title, "for this conversation" before or behind it."""
    title = rf"\b(?:{articles})\s(?:[\w-]+\s){{0,4}}?(?:[\w-]*-)?(?:{titles})\b"
    talk = rf"\b(?:{conversations})\b"
    end = r"(?=\s*(?:[^\w\s]|$)|\s+(?:in|mit|ohne|en|avec|sans|con|sin|com|sem|met|zonder)\b)"
    either = rf"{title}{_IN_SENTENCE}{{0,60}}?{talk}{end}|{talk}{_IN_SENTENCE}{{0,40}}?{title}"
    return rf"\b(?:{verbs})\b{_IN_SENTENCE}{{0,60}}?(?:{either})"


_TITLE = re.compile(
    r"\b(?:provide|generate|write|create|make)\b[^.\n]{0,60}\btitle\b[^.\n]{0,40}"
    r"\b(?:for|of) (?:the|this|our) (?:\w+ ){0,2}(?:conversation|chat)\b"
    r"|\banaly[sz]e this conversation and provide\b"
    rf"|\b{_MAKE}{_IN_SENTENCE}{{0,80}}?\b(?<!the )(?:title|name|heading)\b{_IN_SENTENCE}{{0,60}}?"
    rf"\b(?:for|of|to|from|about|(?:summari[sz]|describ|captur|reflect)(?:ing|es)) {_CONVERSATION}"
    rf"|\b{_MAKE} {_CONVERSATION}{_IN_SENTENCE}{{0,40}}?\b(?:title|name|heading)\b"
    rf"|^\W*name {_CONVERSATION}"
    r"|\byou are (?:an? |the )?(?:[\w-]+ ){0,4}(?:titles?|titling)[ -](?:generator|assistant|writer|creator|expert)"
    r"|\byou are (?:an? |the )?(?:[\w-]+ ){0,4}(?:that|who) (?:generates|creates|writes|makes) (?:[\w-]+ ){0,3}titles\b"
    rf"|\bsummari[sz]e (?:in|into|as) {_A_TITLE}"
    r"|(?:总结|總結|概括|生成|返回|给出)[^。\n]{0,40}(?:会话|會話|对话|對話|聊天|这句话)[^。\n]{0,40}(?:标题|標題|主题|主題)"
    r"|(?:会话|會話|对话|對話|聊天|用户的?(?:消息|问题|提问))[^。\n]{0,40}(?:总结|總結|概括|归纳|生成|起|取|拟)[^。\n]{0,40}"
    r"(?:标题|標題|主题|主題|名称|名字)"
    r"|(?:会話|対話|チャット|ユーザーのメッセージ)[^。\n]{0,40}(?:タイトル|題名|見出し)[^。\n]{0,40}(?:生成|作成|要約|付け|つけ|考え|作っ)"
    r"|(?:대화|채팅)[^.\n]{0,40}제목[^.\n]{0,40}(?:생성|작성|만들|지어|요약)"
    r"|\b(?:создай|придумай|сгенерируй|напиши|составь)(?:те)?\b[^.\n]{0,60}\b(?:заголовок|название)\b[^.\n]{0,40}"
    r"\b(?:беседы|разговора|диалога|чата|переписки|сообщения)\b"
    "|" + "|".join(_title_in(*words) for words in _OTHER_LANGUAGES),
    re.IGNORECASE,
)
_TITLE_RULE = re.compile(
    rf"{_ORDER}{_MAKE}{_IN_SENTENCE}{{0,20}}? {_A_TITLE}{_IN_SENTENCE}{{0,30}}?\b"
    r"(?:based on|from|for|of) (?:the|their) (?:user's )?(?:first|initial|opening|last|latest|following) "
    r"(?:messages?|prompt|exchange|query|question)\b"
    rf"|{_ORDER}summari[sz]e (?:the|this) (?:[\w-]+ ){{0,2}}session (?:in|into|as) {_A_TITLE}"
    rf"|{_ORDER}(?:summari[sz]e|condense) {_SENT} (?:in|into|as|to)\b",
    re.IGNORECASE,
)
"""Of a system message alone: the user's messages may be about those of a document."""
_STANDALONE = re.compile(
    rf"{_ORDER}(?:re-?phrase|rewrite|re-?write|(?:re)?formulate|condense|convert|turn|transform|generate|write)\b"
    rf"{_IN_SENTENCE}{{0,80}}?\b(?:stand-?alone|self-contained) (?:search )?(?:question|query|message)\b",
    re.IGNORECASE,
)
_AND_ANSWER = re.compile(
    r"\b(?:and|then) (?:then )?(?:answer|search|reply)\b|\bbefore (?:you |any )?\w*(?:answer|search)", re.IGNORECASE
)
_LAST_QUESTION = re.compile(
    r"^[^\w\n]*(?:(?:follow[- ]?up|latest|last|new|current|user(?:'s)?)[ _](?:question|input|message|query)|"
    r"question|query)[^\w\n]*?[:>]\s*(?P<question>\S.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_SUMMARY = re.compile(
    rf"^\W*(?:please )?(?:(?:briefly )?summari[sz]e|recap|condense|{_MAKE}{_IN_SENTENCE}{{0,40}}?\bsummary of) "
    rf"(?:briefly )?{_CONVERSATION}",
    re.IGNORECASE,
)
_SUMMARY_OF_ALL = re.compile(
    r"^\W*(?:please )?(?:briefly )?summari[sz]e (?:the|this|our) (?:\w+ ){0,2}"
    r"(?:discussion|conversation|chat|dialog(?:ue)?|exchange|messages)\b(?! (?:of|about|on)\b)",
    re.IGNORECASE,
)
"""Of a system message that stands last: nothing but the conversation is before it."""
_TAGS = re.compile(rf"\b{_MAKE}{_IN_SENTENCE}{{0,60}}?\btags\b{_IN_SENTENCE}{{0,60}}?{_CONVERSATION}", re.IGNORECASE)
_FOLLOW_UPS = re.compile(
    rf"\b{_MAKE}{_IN_SENTENCE}{{0,60}}?\bfollow[- ]?ups?\b{_IN_SENTENCE}{{0,60}}?"
    rf"(?:{_CONVERSATION}|\b(?:the )?user (?:might|may|could|would|can)\b)",
    re.IGNORECASE,
)
_EMOJI = re.compile(
    rf"\b(?:your task is to|{_MAKE}|reply|respond|answer|choose|pick|select){_IN_SENTENCE}{{0,100}}?"
    r"\b(?:single|one|fitting|suitable|appropriate|matching|relevant) emojis?\b",
    re.IGNORECASE,
)
_FIRST_WORDS = 400
"""Characters of a message in which it says what it wants."""
_USER = (
    r"(?:user|human|nutzer(?:in)?|benutzer|utilisateur|usuario|usuário|utente|gebruiker|用户|ユーザー)\s*[:\uff1a]\s*"
)
_TURN = re.compile(
    rf"^[^\w\n]*{_USER}(?P<plain>.+)$"
    r'|"role"\s*:\s*"user"[^{}]{0,200}?(?:"(?:content|parts)"\s*:\s*\[\s*\{[^{}]{0,200}?)?'
    r'"(?:content|text|mainText)"\s*:\s*"(?P<json>(?:[^"\\]|\\.)+)"',
    re.MULTILINE | re.IGNORECASE,
)
_HISTORY = re.compile(r"#+ Chat History:|<chat_history>|\bConversation\s*:", re.IGNORECASE)
_TAG = re.compile(r"</?[\w-]+>")
_BESIDE = re.compile(
    r"\b(?:message|text|question|query|prompt|request|following|below|here)\W{0,3}:\s*(?P<behind>\S.*)$"
    r"|[\"\u201c](?P<quoted>[^\"\u201c\u201d]+)[\"\u201d]\s*$"
    r"|\n[^\S\n]*\n(?P<below>.+)$"
    r"|\n(?P<last>[^\n?\uff1f]+[?\uff1f][^\n]*)$",
    re.DOTALL | re.IGNORECASE,
)
"""What stands in the same message as the order for a title, and is to have the title."""
_BEHIND = re.compile(rf"[^.?!:\n]{{0,40}}[:\uff1a]\s*(?:{_USER})?(?P<behind>\S.*)$", re.DOTALL | re.IGNORECASE)
"""The same behind the words of the order."""
_MARKS = "\"'\u201c\u201d\u201e` "
_JSON_LIST = re.compile(r"\bJSON (?:array|list)\b|\b(?:array|list) of strings\b", re.IGNORECASE)
SUMMARY_CHARS = 400


def helper_task(body: ChatCompletionRequest) -> HelperTask | None:
    """The task that the last message sets; None for a question."""
    number = last_user_message(body)
    if number is None:
        return None
    text = body.messages[number].text
    if _TASK.match(text) and "<context>" not in text:
        key = _KEY.search(text)
        return HelperTask(key[1]) if key is not None else HelperTask.OTHER
    has_turns = any(message.role == "assistant" for message in body.messages) or _TURN.search(text) is not None
    last = body.messages[-1]
    if has_turns and last.role in ("system", "developer") and _SUMMARY_OF_ALL.match(last.text):
        return HelperTask.SUMMARY
    system = [message.text[:_FIRST_WORDS] for message in body.messages if message.role in ("system", "developer")]
    return _in_words(text[:_FIRST_WORDS], has_turns=has_turns) or next(
        (task for each in system if (task := _of_rule(each)) is not None), None
    )


def _of_rule(text: str) -> HelperTask | None:
    """The task that a system message sets for all that follows."""
    if _TITLE.search(text):
        return HelperTask.TITLE
    if _AND_ANSWER.search(text):
        return None
    if _TITLE_RULE.search(text):
        return HelperTask.TITLE
    return HelperTask.STANDALONE if _STANDALONE.search(text) else None


def _in_words(text: str, *, has_turns: bool) -> HelperTask | None:
    """The task that a message of the user sets in words. Without turns there is no conversation to sum up: a document
    is meant."""
    if _TITLE.search(text):
        return HelperTask.TITLE
    if has_turns and _SUMMARY.search(text):
        return HelperTask.SUMMARY
    if _STANDALONE.search(text):
        return HelperTask.STANDALONE
    if _TAGS.search(text):
        return HelperTask.TAGS
    if _FOLLOW_UPS.search(text):
        return HelperTask.FOLLOW_UPS
    return HelperTask.OTHER if _EMOJI.search(text) else None


def without_model(task: HelperTask, body: ChatCompletionRequest) -> str:
    """The reply where no language model is configured: the title and the picture are of the first question, a summary
    is of the questions, lists are empty, and a question is put in full by the rules for follow-ups."""
    number = last_user_message(body)
    text = body.messages[number].text if number is not None else ""
    match task:
        case HelperTask.TITLE:
            title = _title(body, text)
            return json.dumps({"title": title}, ensure_ascii=False) if '"title"' in text else title
        case HelperTask.SUMMARY:
            return cut(" ".join(_questions(body, text)), SUMMARY_CHARS)
        case HelperTask.STANDALONE:
            return _in_full(body, text)
        case HelperTask.IMAGE_PROMPT:
            return json.dumps({task.value: next(iter(_questions(body, text)), "")}, ensure_ascii=False)
        case HelperTask.TAGS | HelperTask.FOLLOW_UPS | HelperTask.QUERIES:
            return _empty_list(task, text)
        case _:
            return json.dumps({"text": ""}) if task is HelperTask.COMPLETION else ""


def _empty_list(task: HelperTask, text: str) -> str:
    """An empty list in the form that ``text`` sets: an object, a list, or words."""
    if f'"{task}"' in text:
        return json.dumps({task.value: []})
    return "[]" if _JSON_LIST.search(text) else ""


def _title(body: ChatCompletionRequest, text: str) -> str:
    first = next(iter(_questions(body, text)), "").strip().partition("\n\n")[0]
    return cut(first, TITLE_CHARS).rstrip(" ?.!") or "Documents"


def _in_full(body: ChatCompletionRequest, text: str) -> str:
    """The last question of the conversation, as it reads after those before."""
    marked = list(_LAST_QUESTION.finditer(text))
    before = text[: marked[-1].start()] if marked else ""
    earlier = _turns(before) or [message.text for message in body.messages if message.role == "user"][:-1]
    last = marked[-1]["question"].strip() if marked else ""
    if not marked:
        *earlier, last = _questions(body, text) or [""]
    return cut(standalone(last, [each for each in earlier if len(each) <= MAX_TURN_CHARS]), MAX_CHARS)


def _questions(body: ChatCompletionRequest, text: str) -> list[str]:
    """The user's turns of the conversation: those in ``text``, which sets the task, or messages of their own, or what
    ``text`` has beside the task."""
    if turns := _turns(text):
        return turns
    texts = [message.text for message in body.messages if message.role == "user" and message.text.strip()]
    own = [_TAG.sub("", each).strip() for each in texts if _in_words(each[:_FIRST_WORDS], has_turns=True) is None]
    return own or _beside(text)


def _beside(text: str) -> list[str]:
    """What stands in ``text`` beside the order for a title; nothing where it is the order alone."""
    order = _TITLE.search(text)
    match = (_BEHIND.match(text, order.end()) if order is not None else None) or _BESIDE.search(text.rstrip())
    return [next(filter(None, match.groups())).strip(_MARKS)] if match is not None else []


def _turns(text: str) -> list[str]:
    """The user's turns of a conversation that ``text`` holds."""
    history = _HISTORY.search(text)
    turns = _TURN.finditer(text, history.end() if history is not None else 0)
    return [turn["plain"] or _unescaped(turn["json"]) for turn in turns]


def _unescaped(text: str) -> str:
    """The text that stands in JSON as ``text``; what is no JSON as it stands."""
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text
