"""Text by a model that `adaparam export RUN --onnx model.onnx` wrote, at temperature 0 the text of `adaparam generate`.

    pip install onnxruntime numpy regex      (regex only for models of characters and of unicode-words)
    python generate.py model.onnx --prompt "call me" --max-words 50
"""

import argparse
import re
import sys

import numpy as np
import onnxruntime

UNK = "<unk>"
# Those of Unicode; `str.split()` and `\s` have others too.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
ESCAPES = {" ": "\\s", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def is_control(letter):
    return letter < " " or "\x7f" <= letter <= "\x9f"


def escaped(text):
    """The name of a token that may hold white space: `\\s` for a space, `\\u{a0}` for what has no letter."""
    special = [letter in WHITE_SPACE or is_control(letter) for letter in text]
    return "".join(
        ESCAPES.get(letter) or (f"\\u{{{ord(letter):x}}}" if is_special else letter)
        for letter, is_special in zip(text, special)
    )


def unescaped(name):
    letters = {escape: letter for letter, escape in ESCAPES.items()}
    escape = re.compile(r"\\(?:u\{([0-9a-f]+)\}|.)")
    return escape.sub(lambda found: chr(int(found[1], 16)) if found[1] else letters[found[0]], name)


class Tokens:
    def within_a_line(self, name):
        """The name that a token at the beginning of a text has behind another word, if it has another one there."""


class Words(Tokens):
    """What stands between white space; `<eos>` ends a line."""

    line_end = "<eos>"

    def cut(self, text):
        lines = text.split("\n")
        for place, line in enumerate(lines):
            for letter in WHITE_SPACE:
                line = line.replace(letter, " ")
            yield from (word for word in line.split(" ") if word)
            if place + 1 < len(lines):
                yield self.line_end

    def spelling(self, name, before):
        if name == self.line_end:
            return b"\n"
        return (name if before in (None, self.line_end) else f" {name}").encode()


class Characters(Tokens):
    """What a reader takes for a character."""

    line_end = "\\n"

    def cut(self, text):
        import regex

        yield from map(escaped, regex.findall(r"\X", text))

    def spelling(self, name, before):
        return (name if name == UNK else unescaped(name)).encode()


class UnicodeWords(Characters):
    """Words and marks by Unicode's boundaries and after the apostrophe of an elision; a single space belongs to what follows."""

    def cut(self, text):
        import regex

        elision = regex.compile(r"(?V1i)(?<=\p{Alphabetic}['’])(?=[aeiouyhàáâäæèéêëìíîïòóôöœùúûüÿ])")
        pieces = [part for piece in regex.split(r"(?V1w)\b", text) if piece for part in elision.split(piece)]
        place = 0
        while place < len(pieces):
            piece = pieces[place]
            place += 1
            if piece == " " and place < len(pieces) and pieces[place][0] not in WHITE_SPACE:
                piece += pieces[place]
                place += 1
            yield escaped(piece)

    def within_a_line(self, name):
        text = unescaped(name)
        return None if text[0] in WHITE_SPACE else escaped(f" {text}")


class Bytes(Tokens):
    """The bytes of the text in UTF-8, each named by two digits."""

    line_end = "0a"

    def cut(self, text):
        yield from (f"{byte:02x}" for byte in text.encode())

    def spelling(self, name, before):
        return bytes.fromhex(name)


TOKENS = {"words": Words, "characters": Characters, "unicode-words": UnicodeWords, "bytes": Bytes}


class Model:
    """One step at a time: word numbers and states in, scores and states out."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        about = self.session.get_modelmeta().custom_metadata_map
        words = about["adaparam.vocabulary"].removesuffix("\n").split("\n")
        if words[0].startswith("# tokens: "):
            words = words[1:]
        self.tokens = TOKENS[about["adaparam.tokens"]]()
        self.words, self.line_end = words, int(about["adaparam.line_end"])
        self.ids = {word: number for number, word in enumerate(words)}
        self.unk = self.ids.get(UNK)

    def zero_state(self, batch=1):
        states = self.session.get_inputs()[1:]
        return {state.name: np.zeros((batch, state.shape[1]), np.float32) for state in states}

    def step(self, ids, state, with_policies=False):
        """The scores of every word as the next one, `[batch, V]`, the state to go on from, and the policies if asked for."""
        policies = [output.name for output in self.session.get_outputs() if output.name.startswith("policy.")]
        wanted = ["logits"] + [f"next.{name}" for name in state] + (policies if with_policies else [])
        found = dict(zip(wanted, self.session.run(wanted, {"ids": np.asarray(ids, np.int64), **state})))
        state = {name: found[f"next.{name}"] for name in state}
        return found["logits"], state, [found[name] for name in policies if name in found]

    def read(self, text, remark=lambda line: print(line, file=sys.stderr)):
        """The numbers of a text's tokens. What the model does not know is read as `<unk>`, or left out where it has none.

        It may know the first word within a line only."""
        ids = []
        for place, name in enumerate(self.tokens.cut(text)):
            known = self.ids.get(name)
            if known is None and place == 0:
                known = self.ids.get(self.tokens.within_a_line(name))
            if known is None:
                instead = "left out" if self.unk is None else f"read as {UNK}"
                remark(f"--prompt: `{name}` is not in the vocabulary: {instead}")
                known = self.unk
            if known is not None:
                ids.append(known)
        return ids

    def text(self, ids, prompt=""):
        """What tokens spell, the first one as the prompt has it; bytes that are no UTF-8 are shown as U+FFFD."""
        names = [self.words[number] for number in ids]
        typed = next(self.tokens.cut(prompt), None)
        if typed and names[:1] == [self.tokens.within_a_line(typed)]:
            names[0] = typed
        spelled = map(self.tokens.spelling, names, [None, *names])
        return b"".join(spelled).decode(errors="replace")


def generate(model, prompt, count, temperature, seed, may_be_unknown=False):
    """The numbers of the prompt's tokens, then of `count` more."""
    random = np.random.default_rng(seed)
    state, given = model.zero_state(), model.read(prompt)
    word = model.line_end  # a text begins where a line has ended
    for place in range(len(given) + count):
        logits, state, _ = model.step([word], state)
        scores = logits[0].astype(np.float64)
        if model.unk is not None and not may_be_unknown:
            scores[model.unk] = -np.inf
        if place < len(given):
            word = given[place]
        elif temperature == 0:
            word = int(scores.argmax())
        else:
            weights = np.exp((scores - scores.max()) / temperature)
            word = int(random.choice(len(weights), p=weights / weights.sum()))
        yield word


def visible(text):
    """The text without what a terminal would obey."""
    text = text.replace("\r", "\\r")
    return "".join(f"\\u{ord(it):04x}" if is_control(it) and it not in "\n\t" else it for it in text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--prompt", default="")
    parser.add_argument("--max-words", type=int, default=50, help="words, characters, bytes or pieces behind the prompt")
    parser.add_argument("--temperature", type=float, default=1.0, help="0 for the likeliest")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unk", action="store_true", help=f"draw {UNK} like any word")
    told = parser.parse_args()
    model = Model(told.model)
    ids = generate(model, told.prompt, told.max_words, told.temperature, told.seed, told.unk)
    print(visible(model.text(ids, told.prompt)))
