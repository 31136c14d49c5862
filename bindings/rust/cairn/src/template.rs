//! Chat templates: conversations as the text that a model was trained on.
use crate::error::Result;
use crate::handle::{make, Handle};
use crate::text::{c_text, Text};
use cairn_sys as sys;

/// A template of Jinja, as Hugging Face's Transformers runs it. Clones are the same one.
///
/// `Send + Sync`: all its calls are `const` in `cairn.h`.
///
/// ```
/// let template = cairn::Template::new("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}", "chat")?;
/// let text = template.render(r#"{"messages": [{"role": "user", "content": "hi"}]}"#)?;
/// assert_eq!(text.as_str()?, "<user>hi");
/// # Ok::<(), cairn::Error>(())
/// ```
#[derive(Debug)]
pub struct Template {
    raw: Handle<sys::cairn_template_t>,
}

// Only const calls are made with it.
unsafe impl Sync for Template {}

impl Template {
    /// Reads a template; `name` is what errors call it. Errors: `CorruptFile`, `Unsupported` (a tag, filter or test that is not
    /// known).
    pub fn new(source: &str, name: &str) -> Result<Template> {
        let name = c_text("a template's name", name)?;
        let (data, size) = (source.as_ptr().cast(), source.len());
        let raw = make(|out, error| unsafe { sys::cairn_template_create(data, size, name.as_ptr(), out, error) })?;
        Ok(Template { raw })
    }

    /// The text that it makes of a JSON object: messages, tools, add_generation_prompt and so on. Errors: `InvalidArgument` (also
    /// what the template raises), `Unsupported` (more steps or bytes than are allowed).
    pub fn render(&self, values: &str) -> Result<Text> {
        let (raw, data, size) = (self.raw.get(), values.as_ptr().cast(), values.len());
        Text::make(|out, error| unsafe { sys::cairn_template_render(raw, data, size, out, error) })
    }
}

impl Clone for Template {
    fn clone(&self) -> Template {
        Template { raw: self.raw.again() }
    }
}
