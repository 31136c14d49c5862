//! An op on its way into a graph.
use super::builder::GraphBuilder;
use super::value::Value;
use crate::error::{Error, Result, Status};
use crate::handle::{blank, check};
use crate::text::Texts;
use cairn_sys as sys;

/// The value of an attribute: an integer, a real number, a word, or a list of integers or of real numbers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Attr {
    /// A whole number, also what is yes (1) or no (0).
    Integer(i64),
    /// A real number.
    Real(f64),
    /// A word, as `"gelu_tanh"`.
    Word(String),
    /// A list, as a shape.
    List(Vec<i64>),
    /// A list of real numbers, as frequencies.
    Reals(Vec<f64>),
}

macro_rules! attribute {
    ($($from:ty: $kind:ident $convert:expr),* $(,)?) => {$(
        impl From<$from> for Attr {
            fn from(value: $from) -> Attr {
                Attr::$kind($convert(value))
            }
        }
    )*};
}

attribute! {
    i64: Integer i64::from, i32: Integer i64::from, bool: Integer i64::from, f64: Real f64::from, &str: Word String::from,
    &[i64]: List <[i64]>::to_vec, Vec<i64>: List Vec::from, &[f64]: Reals <[f64]>::to_vec, Vec<f64>: Reals Vec::from,
}

impl<const N: usize> From<&[i64; N]> for Attr {
    fn from(list: &[i64; N]) -> Attr {
        Attr::List(list.to_vec())
    }
}

/// An op begun by [`GraphBuilder::op`], which `build` adds.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Op<'g> {
    graph: &'g mut GraphBuilder,
    name: String,
    inputs: Vec<Option<Value>>,
    attrs: Vec<(String, Attr)>,
}

impl<'g> Op<'g> {
    pub(crate) fn new(graph: &'g mut GraphBuilder, name: &str, inputs: &[Value]) -> Op<'g> {
        let inputs = inputs.iter().copied().map(Some).collect();
        Op { graph, name: name.to_string(), inputs, attrs: Vec::new() }
    }

    /// Operand number `at`, from 0, in the order of the op's row; those left out need no call.
    pub fn input(mut self, at: usize, value: Value) -> Self {
        if self.inputs.len() <= at {
            self.inputs.resize(at + 1, None);
        }
        self.inputs[at] = Some(value);
        self
    }

    /// The attribute `name`.
    pub fn attr(mut self, name: &str, value: impl Into<Attr>) -> Self {
        self.attrs.push((name.to_string(), value.into()));
        self
    }

    /// Adds the op and returns its first output.
    ///
    /// Errors: `NotFound` (no op of that name); `InvalidArgument` names op, operand and both shapes.
    pub fn build(self) -> Result<Value> {
        let [first] = self.build_all::<1>()?;
        made(first)
    }

    /// Adds the op and returns its first `N` outputs, `None` where it makes none.
    ///
    /// ```
    /// # let instance = cairn::Instance::new()?;
    /// let mut graph = instance.graph()?;
    /// let x = graph.input("x", &[8, 16], cairn::DType::F32)?;
    /// let [y, mean, rstd] = graph.op("layernorm", &[x]).attr("eps", 1e-6).build_all()?;
    /// assert!(y.is_some() && mean.is_some() && rstd.is_some());
    /// # Ok::<(), cairn::Error>(())
    /// ```
    pub fn build_all<const N: usize>(self) -> Result<[Option<Value>; N]> {
        let mut texts = Texts::default();
        let name = texts.add("the name of an op", &self.name)?;
        let mut attrs = Vec::with_capacity(self.attrs.len());
        for (name, value) in &self.attrs {
            attrs.push(raw_attr(&mut texts, name, value)?);
        }
        let brand = self.graph.brand();
        let number = |value: &Option<Value>| value.map_or(Ok(0), |value| brand.number(value));
        let inputs = self.inputs.iter().map(number).collect::<Result<Vec<u32>>>()?;
        let mut out = [0u32; N];
        let graph = self.graph.raw();
        // All arrays live until the call returns, with the lengths that are told.
        let result = check(|error| unsafe {
            let (inputs, attrs) = ((inputs.as_ptr(), inputs.len()), (attrs.as_ptr(), attrs.len()));
            sys::cairn_graph_op(graph, name, inputs.0, inputs.1, attrs.0, attrs.1, out.as_mut_ptr(), N, error)
        });
        self.graph.host().explain(result)?;
        Ok(out.map(|number| (number != 0).then_some(Value { number, brand })))
    }
}

/// An output that an op always makes.
pub(crate) fn made(value: Option<Value>) -> Result<Value> {
    value.ok_or_else(|| Error::new(Status::Internal, "an op gave no value for an output that it always has"))
}

fn count(name: &str, elements: usize) -> Result<u32> {
    u32::try_from(elements).map_err(|_| Error::argument(format!("the list '{name}' has {elements} elements: too many")))
}

/// Borrows from `texts` and `value`.
fn raw_attr(texts: &mut Texts, name: &str, value: &Attr) -> Result<sys::cairn_attr_t> {
    let mut raw = blank::<sys::cairn_attr_t>();
    raw.name = texts.add("the name of an attribute", name)?;
    raw.kind = match value {
        Attr::Integer(integer) => {
            raw.integer = *integer;
            sys::CAIRN_ATTR_INTEGER
        }
        Attr::Real(real) => {
            raw.real = *real;
            sys::CAIRN_ATTR_REAL
        }
        Attr::Word(word) => {
            raw.word = texts.add("an attribute", word)?;
            sys::CAIRN_ATTR_WORD
        }
        Attr::List(list) => {
            raw.list = list.as_ptr();
            raw.list_count = count(name, list.len())?;
            sys::CAIRN_ATTR_LIST
        }
        Attr::Reals(list) => {
            raw.reals = list.as_ptr();
            raw.list_count = count(name, list.len())?;
            sys::CAIRN_ATTR_REALS
        }
    };
    Ok(raw)
}
