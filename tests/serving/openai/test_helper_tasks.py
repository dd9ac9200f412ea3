"""What chat clients ask for themselves is no question: nothing is searched and no run is recorded."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.support.openai_calls import CHAT, ask, json_schema
from tests.support.stand_in import StandIn
from vrag_ray.serving.openai.question import ATTACHED, ATTACHED_UNREAD
from vrag_ray.types import Completion

pytestmark = pytest.mark.anyio
HISTORY = (
    "### Chat History:\n<chat_history>\nUSER: Who directs the harbour museum?\nASSISTANT: Olga [1].\n</chat_history>"
)
DIRECTS = "Who directs the harbour museum?"
TITLE = f'### Task:\nWrite a short title.\n### Output:\nJSON: {{"title": "..."}}\n{HISTORY}'
TAGS = f'### Task:\nName one to three tags.\nJSON: {{ "tags": ["tag"] }}\n{HISTORY}'
FOLLOW_UPS = f'### Task:\nSuggest questions.\nJSON: {{ "follow_ups": ["?"] }}\n{HISTORY}'
LISTED = '<attached_files>\n<file type="file" name="lantern.txt"/>\n</attached_files>\n\n'
PLAIN_TITLE = "Provide a concise title of five words or less for the conversation below.\nUser: Who directs the museum?"


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        (TITLE, {"title": "Who directs the harbour museum"}),
        (TAGS, {"tags": []}),
        (FOLLOW_UPS, {"follow_ups": []}),
        ('### Task:\nComplete the text. JSON: {"text": ""}', {"text": ""}),
        (f'### Task:\nGenerate a detailed prompt. JSON: {{ "prompt": "" }}\n{HISTORY}', {"prompt": DIRECTS}),
        ('### Task:\nWrite search queries. JSON: { "queries": ["q"] }', {"queries": []}),
    ],
)
async def test_without_a_model_the_reply_is_short_and_no_run(
    client: httpx.AsyncClient, backend: StandIn, text: str, reply: object
):
    backend.known_agents = ("extractive",)
    answer = await client.post(CHAT, json=ask(content=text))
    assert json.loads(answer.json()["choices"][0]["message"]["content"]) == reply
    assert "x-run-id" not in answer.headers
    assert not backend.started


async def test_a_title_requested_as_plain_text_is_plain_text(client: httpx.AsyncClient, backend: StandIn):
    backend.known_agents = ("extractive",)
    answer = await client.post(CHAT, json=ask(content=PLAIN_TITLE))
    assert answer.json()["choices"][0]["message"]["content"] == "Who directs the museum"


async def test_with_a_model_it_writes_the_title_itself(client: httpx.AsyncClient, backend: StandIn):
    backend.reply = (Completion('{"title": "Harbour museum"}'),)
    answer = await client.post(CHAT, json=ask("vimrag", TITLE))
    assert answer.json()["choices"][0]["message"]["content"] == '{"title": "Harbour museum"}'
    assert not backend.started
    assert len(backend.chats) == 1


@pytest.mark.parametrize("model", ["extractive", "vimrag"])
async def test_a_question_with_files_attached_is_a_question_and_says_what_became_of_them(
    client: httpx.AsyncClient, backend: StandIn, model: str
):
    backend.go.set()
    context = '<source id="1" name="lantern.txt">The keeper is Aslaug Dahl.</source>'
    text = f"### Task:\nRespond by the context.\n\n<context>\n{context}\n</context>\n\n{LISTED}Who keeps the\nlantern?"
    message = (await client.post(CHAT, json=ask(model, text))).json()["choices"][0]["message"]
    [run] = backend.started
    if model == "extractive":
        assert (run.question, message["notices"]) == ("Who keeps the\nlantern?", [ATTACHED_UNREAD])
        assert message["reasoning_content"].startswith(f"{ATTACHED_UNREAD}\n")
    else:
        assert run.question.splitlines()[:2] == ["Who keeps the", "lantern?"]
        assert f"user: attached: {context}" in run.question
        assert message["notices"] == [ATTACHED]


@pytest.mark.parametrize(
    "text",
    ["Which title does the report on the harbour have?", "What was the task of the pilot?", "# Task list of 1922"],
)
async def test_questions_about_titles_and_tasks_are_questions(client: httpx.AsyncClient, backend: StandIn, text: str):
    backend.go.set()
    assert "x-run-id" in (await client.post(CHAT, json=ask(content=text))).headers
    assert backend.started[0].question == text


async def test_instructions_that_speak_of_titles_leave_questions_what_they_are(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    rule = {"role": "system", "content": "Always write the title of each document that the conversation is about."}
    body = {"model": "vimrag", "messages": [rule, {"role": "user", "content": "Who runs the harbour?"}]}
    assert "x-run-id" in (await client.post(CHAT, json=body)).headers


@pytest.mark.parametrize(
    "rule",
    [
        "Write a brief title that captures the subject of the conversation.",
        "Find the language of the user and write in that language an utterly short title for this conversation",
        "Analyze this conversation and provide:\n1. its language\n2. a title of it",
    ],
)
async def test_other_wishes_for_a_title_are_known_too_and_may_have_a_schema(
    client: httpx.AsyncClient, backend: StandIn, rule: str
):
    talk = {"role": "user", "content": "user: Who runs the harbour?\nassistant: The authority."}
    messages = [{"role": "system", "content": rule}, talk]
    backend.reply = (Completion('{"title": "Harbour"}'),)
    schema = json_schema({"type": "object", "properties": {"title": {"type": "string"}}})
    reply = await client.post(CHAT, json={"model": "vimrag", "messages": messages, "response_format": schema})
    assert reply.json()["choices"][0]["message"]["content"] == '{"title": "Harbour"}'
    [chat] = backend.chats
    assert chat.form is not None
    backend.known_agents = ("extractive",)
    plain = await client.post(CHAT, json={"model": "extractive", "messages": messages})
    assert plain.json()["choices"][0]["message"]["content"] == "Who runs the harbour"
    assert not backend.started


QUESTION = {"role": "user", "content": "Who runs the harbour?"}
ANSWERED = {"role": "assistant", "content": "The authority [1]."}


def rule(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@pytest.mark.parametrize(
    ("messages", "reply"),
    [
        (
            [QUESTION, ANSWERED, user("Please generate a four to five word title summarizing our conversation.")],
            "title",
        ),
        ([QUESTION, ANSWERED, rule("Summarize the discussion briefly in 200 words or less, for later.")], "summary"),
        ([QUESTION, ANSWERED, user("Summarize our conversation in two sentences.")], "summary"),
        ([QUESTION, ANSWERED, user("By the chat history, give this conversation a name.\nBe short.")], "title"),
        ([QUESTION, ANSWERED, user("Name this conversation in 10 characters or less.")], "title"),
        ([QUESTION, ANSWERED, user("Find a title for a conversation between a user and an assistant.")], "title"),
        ([rule("You need to summarize the user's conversation into a title within 10 words."), QUESTION], "title"),
        (
            [rule("Make a title of the conversation."), user('[{"role": "user", "text": "Who runs the harbour?"}]')],
            "title",
        ),
        ([rule("You are a title generator."), user("Generate a title for this conversation:"), QUESTION], "title"),
        ([QUESTION, ANSWERED, user("Suggest three follow-up questions that the user might have next.")], ""),
        ([QUESTION, ANSWERED, user("Generate one to three tags for this chat.")], ""),
        ([user("Your task is to reflect the speaker's mood through a fitting emoji.\n\nMessage: ```Oh```")], ""),
    ],
)
async def test_tasks_of_clients_in_words_of_their_own_are_no_questions(
    client: httpx.AsyncClient, backend: StandIn, messages: list[dict[str, str]], reply: str
):
    backend.known_agents = ("extractive",)
    answer = await client.post(CHAT, json={"model": "extractive", "messages": messages})
    expected = {"title": "Who runs the harbour", "summary": "Who runs the harbour?", "": ""}[reply]
    assert answer.json()["choices"][0]["message"]["content"] == expected
    assert not backend.started


RUNS = "Who runs the harbour?"
IN_JSON = '{"role": "user", "parts": [{"type": "text", "text": "Who runs the harbour?"}]}'


@pytest.mark.parametrize(
    "messages",
    [
        [user(f'Summarize in a 5-word Title. Give the title only. Here is the message: "{RUNS}"')],
        [user(f"Given the following... please reply with a title for the chat that is 3-4 words in length.\n\n{RUNS}")],
        [user(f"Create a short title for this chat thread: {RUNS}")],
        [user(f"You are an assistant that generates short titles.\n{RUNS}")],
        [rule("Your task is to summarize user requests into a single short sentence of four words or less."), QUESTION],
        [rule("- you will generate a short title based on the first message of a user"), user(IN_JSON)],
        [rule("Summarize the given session as a 10-word title in the user's language."), user(f"[{IN_JSON}]")],
        [rule("你是一名擅长会话的助理，你需要将用户的会话总结为 10 个字以内的标题"), user(f"用户：{RUNS}")],  # noqa: RUF001
        [rule("この会話の短いタイトルを生成してください。"), QUESTION],
        [user(f"Erstelle einen kurzen Titel (max. 5 Wörter) für diese Unterhaltung: Nutzer: {RUNS}")],
        [QUESTION, ANSWERED, user("Fasse dieses Gespräch in einem kurzen Titel zusammen.")],
        [user(f"Génère un titre court pour cette conversation.\n\n{RUNS}")],
        [user(f"Crea un título breve para esta conversación:\n{RUNS}")],
        [QUESTION, ANSWERED, user("Придумай короткое название для этого чата.")],
    ],
)
async def test_a_title_in_any_words_or_language_is_that_of_the_first_question(
    client: httpx.AsyncClient, backend: StandIn, messages: list[dict[str, str]]
):
    backend.known_agents = ("extractive",)
    answer = await client.post(CHAT, json={"model": "extractive", "messages": messages})
    assert answer.json()["choices"][0]["message"]["content"] == "Who runs the harbour"
    assert not backend.started


async def test_further_words_of_an_order_are_no_title(client: httpx.AsyncClient, backend: StandIn):
    backend.known_agents = ("extractive",)
    text = "Generate a title for this conversation, and nothing else.\nInclude the subject in the title."
    answer = await client.post(CHAT, json=ask(content=text))
    assert answer.json()["choices"][0]["message"]["content"] == "Documents"


async def test_lists_that_a_client_requests_as_json_are_empty_json(client: httpx.AsyncClient, backend: StandIn):
    backend.known_agents = ("extractive",)
    text = "Suggest three follow-up questions the user could have next. Return a JSON array of strings."
    answer = await client.post(CHAT, json=ask(content=text))
    assert answer.json()["choices"][0]["message"]["content"] == "[]"


PAINTED = "When was the Ingrid Maren painted?"
REFORMULATE = "Given a chat history and the latest user question, formulate a standalone question. Do NOT answer it."


@pytest.mark.parametrize(
    "messages",
    [
        [
            user(
                "Given the following conversation and a follow up question, rephrase the follow up question to be a "
                f"standalone question.\n\nChat History:\nuser: {PAINTED}\nassistant: In May.\n"
                "Follow Up Input: When was it sold?\nStandalone question:"
            )
        ],
        [
            user(
                "Given a conversation and a follow up message, rewrite the message to be a standalone question.\n\n"
                f"<Chat History>\nuser: {PAINTED}\nassistant: In May.\n\n"
                "<Follow Up Message>\nWhen was it sold?\n\n<Standalone question>\n"
            )
        ],
        [rule(REFORMULATE), user(PAINTED), ANSWERED, user("When was it sold?")],
        [user(PAINTED), ANSWERED, user("Rephrase as a standalone question.\nQuestion: When was it sold?")],
    ],
)
async def test_a_question_to_be_rewritten_is_rewritten_and_not_searched(
    client: httpx.AsyncClient, backend: StandIn, messages: list[dict[str, str]]
):
    backend.known_agents = ("extractive",)
    answer = await client.post(CHAT, json={"model": "extractive", "messages": messages})
    assert answer.json()["choices"][0]["message"]["content"] == "When was the Ingrid Maren sold?"
    assert not backend.started


@pytest.mark.parametrize(
    "text",
    [
        "Rewrite the question as a standalone question before you search, then answer it.",
        "Summarize the user's question in one sentence, then answer it.",
    ],
)
async def test_a_rule_for_answers_is_no_task(client: httpx.AsyncClient, backend: StandIn, text: str):
    backend.go.set()
    messages = [rule(text), QUESTION]
    assert "x-run-id" in (await client.post(CHAT, json={"model": "extractive", "messages": messages})).headers


@pytest.mark.parametrize(
    "text",
    [
        "What is the title of the report?",
        "How do we rewrite a follow-up question as a standalone question?",
        "Which standalone query does the guide generate?",
        "Summarize the user requests in the report.",
        "Write a short title for the report on the harbour.",
        "Summarize the session on titles.",
        "Give the title of the first message in the log.",
        "Reply with the title of the report that the conversation is about.",
        "Gib den Titel des Gesprächs im Bericht an.",
        "Erstelle einen Titel für den Bericht über den Hafen.",
        "Quel est le titre de la conversation ?",
        "会话的标题是什么?",
        "Which questions did users suggest? Return a JSON array.",
        "Summarize the discussion of tides in the report",
        "Summarize the discussion.",
        "Summarize the conversation between Olsen and Dahl.",
        "Write a summary of the discussion on tides.",
        "Find the title of the conversation in the report.",
        "Give the name of the chat application that the port uses.",
        "Give a name for the dialogue in the play of Olsen.",
        "Name the conversation partners of Olsen.",
        "Which follow-up questions did the committee suggest?",
        "Which emoji does the guide recommend?",
        "List the tags of the crane.",
    ],
)
async def test_questions_with_the_words_of_tasks_are_searched(client: httpx.AsyncClient, backend: StandIn, text: str):
    backend.go.set()
    messages = [rule("Give each answer a title. Name the user in the conversation."), QUESTION, ANSWERED, user(text)]
    assert "x-run-id" in (await client.post(CHAT, json={"model": "extractive", "messages": messages})).headers
    assert backend.started[0].question == text


async def test_a_conversation_without_turns_is_one_of_the_documents(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    assert "x-run-id" in (await client.post(CHAT, json=ask(content="Summarize the conversation."))).headers


@pytest.mark.parametrize(
    "text",
    [
        "### Task:\nRespond.\n\n<context>\nBig.\n</context>\n\n<user_query>\nWho keeps the lamp?\n</user_query>\n",
        "### Task:\nRespond.\n\n<user_query>Who keeps the lamp?</user_query>\n\n<context>\nBig.\n</context>\n",
    ],
)
async def test_a_question_in_tags_is_the_words_between_them(client: httpx.AsyncClient, backend: StandIn, text: str):
    backend.go.set()
    reply = await client.post(CHAT, json=ask(content=text))
    assert backend.started[0].question == "Who keeps the lamp?"
    assert reply.json()["choices"][0]["message"]["notices"] == [ATTACHED_UNREAD]
