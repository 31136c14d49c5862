"""What jinja2 makes of a template, set up as Hugging Face's Transformers does; and what libcairn makes of it."""
import ctypes
import datetime
import functools
import json
import warnings

import jinja2
import jinja2.ext
import jinja2.sandbox

warnings.simplefilter("ignore", SyntaxWarning)  # of the Python that jinja2 makes of a template


class Generation(jinja2.ext.Extension):
    """{% generation %} renders what is in it."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_rendered"), [], [], body).set_lineno(line)

    @staticmethod
    def _rendered(caller):
        return caller()


class Namespace(jinja2.utils.Namespace):
    """Refuses attributes that begin with an underscore."""

    def __init__(*arguments, **named):
        self, values = arguments[0], dict(*arguments[1:], **named)
        for name in values:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, values)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals.update(raise_exception=raise_exception, namespace=Namespace, dict=lambda *a, **k: dict(*a, **k),
                        strftime_now=lambda form: datetime.datetime.now().strftime(form))
    return made


@functools.lru_cache(64)
def compiled(source):
    return environment().from_string(source)


def rendered(source, values):
    """("text", what it makes), or ("error", its words)."""
    try:
        return "text", compiled(source).render(**json.loads(json.dumps(values)))
    except Exception as problem:  # whatever Python raises
        return "error", f"{type(problem).__name__}: {problem}"


class Cairn:
    """The same by the library at a path."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name in ("cairn_text_data", "cairn_error_message", "cairn_error_create"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.library.cairn_text_size.restype = ctypes.c_size_t
        self.error = ctypes.c_void_p(self.library.cairn_error_create())

    def problem(self):
        return "error", ctypes.string_at(self.library.cairn_error_message(self.error)).decode()

    def rendered(self, source, values):
        source, values = source.encode(), json.dumps(values).encode()
        template, text = ctypes.c_void_p(), ctypes.c_void_p()
        size = ctypes.c_size_t
        if self.library.cairn_template_create(source, size(len(source)), b"t", ctypes.byref(template), self.error) != 0:
            return self.problem()
        try:
            if self.library.cairn_template_render(template, values, size(len(values)), ctypes.byref(text), self.error) != 0:
                return self.problem()
        finally:
            self.library.cairn_template_release(template)
        data = ctypes.string_at(self.library.cairn_text_data(text), self.library.cairn_text_size(text))
        self.library.cairn_text_release(text)
        return "text", data.decode()


def same(expected, found):
    return expected[0] == found[0] and (expected[0] == "error" or expected[1] == found[1])
