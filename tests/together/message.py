"""The messages of the writers in Python and of the program; `message.mjs` has those of Node."""

SPICE = ["caf\u00e9", "\U0001f980", "\\u00fc", '\\"quoted\\"', "tab\\t", "line\\nline", "\u2028"]


def message(writer: str, number: int) -> str:
    """Returns a message as JSON text, with a unique id and varied spacing and escapes."""
    words = f"{SPICE[number % len(SPICE)]} word{number} " * (5 + number * 37 % 90)
    space = " " * (number % 3)
    role = "assistant" if number % 2 else "user"
    return f'{{"id":{space}"{writer}-{number}","role":"{role}",{space}"content":"{words}"}}'
