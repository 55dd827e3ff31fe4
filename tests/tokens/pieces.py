"""Reads files and cuts texts to the size in which they are measured."""

CHARACTERS_MAX = 6000


def read(file):
    """Returns the text of a file, in the form that it has in a message."""
    return file.read_text(encoding="utf-8-sig").replace("\r\n", "\n")


def cut(text, count):
    """Returns the beginnings of `count` equal parts of a text, so that all of it is represented.
    A part begins with a line, if it has several."""
    pieces = []
    for at in range(count):
        part = text[at * len(text) // count : (at + 1) * len(text) // count]
        if at > 0:
            part = part[part.find("\n") + 1 :]
        pieces.append(part[:CHARACTERS_MAX])
    return pieces


def take_middle(text):
    """Returns the second half of a text that is longer than a piece needs: the beginning of a file
    is often a licence or a list of names."""
    return cut(text, 2)[1] if len(text) > 2 * CHARACTERS_MAX else text
