"""What PyPI's libraries say of a text: token numbers, offsets in bytes of the text as it was given, and decoded text."""
import codecs


def read(data):
    """A text that may be broken as Python reads it, and the byte at which each of its characters begins, and its end."""
    broken = {}

    def note(error):
        broken[error.start] = error.end
        return "\ufffd", error.end

    codecs.register_error("cairn_note", note)
    text = data.decode("utf-8", "cairn_note")
    begins, at = [], 0
    for character in text:
        begins.append(at)
        at = broken[at] if at in broken else at + len(character.encode())
    return text, begins + [len(data)]


class HuggingFace:
    def __init__(self, content):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_str(content)
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def encode(self, data, special=True):
        text, begins = read(data)
        found = self.tokenizer.encode(text, add_special_tokens=special)
        return found.ids, [(begins[begin], begins[end]) for begin, end in found.offsets]

    def decode(self, ids, skip_special):
        return self.tokenizer.decode(ids, skip_special_tokens=skip_special)


class SentencePiece:
    def __init__(self, content):
        import sentencepiece
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=content)

    def encode(self, data, special=True):
        text, begins = read(data)
        found = self.processor.encode(text, return_type="proto").pieces
        given, at = {}, 0  # where each character is in the text as given, by its first byte in UTF-8
        for character, begin in zip(text + "\0", begins):
            given[at] = begin
            at += len(character.encode())
        return [piece.id for piece in found], [(given[piece.begin], given[piece.end]) for piece in found]

    def decode(self, ids, skip_special):
        return self.processor.decode(ids)
