"""Conversations of every shape that templates meet, and what is given beside them."""
TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Get <weather> & \"more\" for é", "parameters": {
            "type": "object", "properties": {
                "city": {"type": "string", "description": "Город"}, "days": {"type": "integer", "default": 3, "enum": [1, 2, 3]},
                "opts": {"type": "array", "items": {"type": "number"}},
                "nested": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}}, "required": ["city"]},
        "return": {"type": "string"}}},
    {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}}]


def user(content, **more):
    return {"role": "user", "content": content, **more}


def answer(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def tool(content, **more):
    return {"role": "tool", "content": content, **more}


CALL = {"type": "function", "id": "call1abc2", "function": {"name": "get_weather", "arguments": {
    "city": "Zürich", "days": 2, "f": 1.5, "big": 1e20, "ok": True, "n": None, "l": [1, "two", {"three": 3}]}}}
CALL_TEXT = {"type": "function", "id": "123456789", "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}
CONVERSATIONS = {
    "user": [user("Hi")],
    "turns": [system("Be brief."), user("Hi"), answer("Hello!"), user("2+2? ")],
    "space": [system(" You are X.\n"), user("Hi\n\nthere"), answer("  Hello! \n"), user("ok"), answer("bye")],
    "unicode": [user("ß Ünï 你好 🎉 \u200b\u00a0x"), answer("Ответ: \"<&>\" '")],
    "empty": [system(""), user(""), answer("")],
    "think": [user("q"), answer("<think>\nreason\n</think>\n\nanswer"), user("more"), answer("ans", reasoning_content="why\n")],
    "thinking": [user("q"), answer("ans", reasoning_content="because", thinking="t2", reasoning="r3"), user("z")],
    "call": [system("sys"), user("weather?"), answer("", tool_calls=[CALL]),
             tool("{\"t\": 21}", name="get_weather", tool_call_id="call1abc2"), answer("It is 21."), user("thx")],
    "calls": [user("weather?"), answer("let me see", tool_calls=[CALL, CALL_TEXT]),
              tool("21", name="get_weather", tool_call_id="123456789"),
              tool([{"type": "text", "text": "22"}], name="get_weather", tool_call_id="123456789"), answer("done")],
    "call_only": [user("w"), {"role": "assistant", "tool_calls": [CALL_TEXT]}, tool({"a": 1})],
    "null_content": [user("w"), answer(None, tool_calls=[CALL]), tool("x")],
    "parts": [system([{"type": "text", "text": "sys parts"}]),
              user([{"type": "text", "text": "look "}, {"type": "image"}, {"type": "text", "text": "and"},
                    {"type": "image", "image": "x.png"}, {"type": "video"}]), answer([{"type": "text", "text": "a cat"}])],
    "developer": [{"role": "developer", "content": "dev"}, user("x"), answer("y")],
    "answer_first": [answer("first"), answer("second")],
    "unknown_role": [{"role": "wizard", "content": "zap"}],
    "late_system": [user("a"), user("b"), system("late")],
    "none": [],
    "no_content": [{"role": "user"}],
    "numbers": [user(5), answer(True)],
}
BESIDE = {
    "alone": {}, "generate": {"add_generation_prompt": True},
    "tools": {"tools": TOOLS, "add_generation_prompt": True},
    "no_thinking": {"enable_thinking": False, "add_generation_prompt": True},
    "all": {"enable_thinking": True, "add_generation_prompt": True, "tools": TOOLS, "reasoning_effort": "high",
            "builtin_tools": ["browser", "python"], "model_identity": "I am X", "documents": [{"title": "T", "text": "doc"}],
            "preserve_thinking": True},
    "nulls": {"tools": None, "add_generation_prompt": False, "documents": None},
    "more": {"continue_final_message": True, "date_string": "26 Jul 2024", "tools_in_user_message": False, "tools": TOOLS,
             "keep_past_thinking": True, "add_vision_id": True},
}


def cases():
    """(name, values) of each conversation with each of what is beside it."""
    for name, messages in CONVERSATIONS.items():
        for beside, more in BESIDE.items():
            yield f"{name}/{beside}", {"messages": messages, "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
                                       "unk_token": "<unk>", **more}
