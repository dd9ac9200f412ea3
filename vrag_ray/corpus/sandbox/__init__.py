"""The killable child process that decodes untrusted bytes, its pipe, and the parent that watches over it."""
