//! Ops of the host's own, as closures.
pub(crate) mod registered;
pub(crate) mod tensor;

use crate::error::Result;
use tensor::{Tensor, TensorMut, TensorType};

/// What a custom op's forward closure works on.
#[derive(Debug)]
pub struct Forward<'a> {
    /// The operands.
    pub inputs: Vec<Tensor<'a>>,
    /// What is to be filled.
    pub outputs: Vec<TensorMut<'a>>,
    /// As many bytes as were asked for.
    pub workspace: &'a mut [u8],
}

/// What a custom op's backward closure works on.
#[derive(Debug)]
pub struct Backward<'a> {
    /// The operands, as forward had them.
    pub inputs: Vec<Tensor<'a>>,
    /// What forward made.
    pub outputs: Vec<Tensor<'a>>,
    /// The gradients of the outputs; one that is not there is zero.
    pub output_gradients: Vec<Tensor<'a>>,
    /// The gradients of the operands, to be filled where they are wanted.
    pub input_gradients: Vec<TensorMut<'a>>,
    /// As many bytes as were asked for.
    pub workspace: &'a mut [u8],
}

type Shape = dyn Fn(&[TensorType]) -> Result<Vec<TensorType>> + Send + Sync;
type RunForward = dyn Fn(&mut Forward<'_>) -> Result<()> + Send + Sync;
type RunBackward = dyn Fn(&mut Backward<'_>) -> Result<()> + Send + Sync;
type Workspace = dyn Fn(&[TensorType]) -> Result<usize> + Send + Sync;

/// An op of the host's own. Its closures run on threads of cairn's, so they are `Send + Sync`; they must not call cairn.
/// What they fail with, or panic with, is the error of the call that they run for.
///
/// ```
/// use cairn::{CustomOp, DType, Ends, Instance};
/// let instance = Instance::new()?;
/// let mut graph = instance.graph()?;
/// graph.custom_op(CustomOp::new("reciprocal", 1, 1, |run| {
///     let x = run.inputs[0].slice::<f32>()?;
///     if x.contains(&0.0) {
///         return Err("there is no reciprocal of 0".into());
///     }
///     for (y, x) in run.outputs[0].slice_mut::<f32>()?.iter_mut().zip(x) {
///         *y = 1.0 / x;
///     }
///     Ok(())
/// }))?;
/// let x = graph.input("x", &[4], DType::F32)?;
/// let y = graph.op("reciprocal", &[x]).build()?;
/// graph.name(y, "y")?;
/// let graph = graph.freeze(Ends::outputs(&[y]))?;
/// let device = instance.device("cpu")?;
/// let mut session = graph.plan(&device)?.session(&device)?;
/// session.write("x", &[1.0f32, 2.0, 4.0, 5.0])?;
/// session.run()?;
/// assert_eq!(session.read_vec::<f32>("y", 4)?, [1.0, 0.5, 0.25, 0.2]);
///
/// session.write("x", &[0.0f32; 4])?;
/// let error = session.run().unwrap_err();
/// assert!(error.message().contains("no reciprocal of 0"), "{error}");
/// # Ok::<(), cairn::Error>(())
/// ```
pub struct CustomOp {
    name: String,
    inputs: u32,
    outputs: u32,
    recomputable: bool,
    shape: Box<Shape>,
    workspace: Option<Box<Workspace>>,
    forward: Box<RunForward>,
    backward: Option<Box<RunBackward>>,
}

impl CustomOp {
    /// An op of one to four operands and outputs. Its outputs have the type of its first operand, it has no gradient,
    /// takes no workspace and is never computed again, where no other method says otherwise.
    pub fn new(
        name: &str,
        inputs: u32,
        outputs: u32,
        forward: impl Fn(&mut Forward<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> CustomOp {
        let count = outputs as usize;
        CustomOp {
            name: name.to_string(),
            inputs,
            outputs,
            recomputable: false,
            shape: Box::new(move |inputs| Ok(vec![inputs[0].clone(); count])),
            workspace: None,
            forward: Box::new(forward),
            backward: None,
        }
    }

    /// The types of the outputs, from those of the operands. Runs when the op is added to the graph.
    pub fn shape(
        mut self,
        shape: impl Fn(&[TensorType]) -> Result<Vec<TensorType>> + Send + Sync + 'static,
    ) -> CustomOp {
        self.shape = Box::new(shape);
        self
    }

    /// How many bytes forward and backward need besides their tensors.
    pub fn workspace(mut self, bytes: impl Fn(&[TensorType]) -> Result<usize> + Send + Sync + 'static) -> CustomOp {
        self.workspace = Some(Box::new(bytes));
        self
    }

    /// The gradients of the operands.
    pub fn backward(mut self, backward: impl Fn(&mut Backward<'_>) -> Result<()> + Send + Sync + 'static) -> CustomOp {
        self.backward = Some(Box::new(backward));
        self
    }

    /// Forward may run again in backward, instead of keeping its outputs: it must be deterministic and free of side
    /// effects.
    pub fn recomputable(mut self) -> CustomOp {
        self.recomputable = true;
        self
    }
}

impl std::fmt::Debug for CustomOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CustomOp({:?}, {} -> {})", self.name, self.inputs, self.outputs)
    }
}
