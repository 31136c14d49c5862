//! Rules of adapters.
use cairn_sys as sys;

/// How an adapter's matrices add to a weight, and how they begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum AdapterKind {
    /// Scaled by alpha / rank.
    #[default]
    Lora = sys::CAIRN_ADAPTER_LORA,
    /// Scaled by alpha / sqrt(rank).
    Rslora = sys::CAIRN_ADAPTER_RSLORA,
    /// The rows of the adapted weight have learnt norms.
    Dora = sys::CAIRN_ADAPTER_DORA,
    /// Begins with the weight's largest singular values, which the weight then has no more.
    Pissa = sys::CAIRN_ADAPTER_PISSA,
}

/// Which weights are frozen and get small matrices that learn. Patterns name modules (weights without ".weight"), with
/// commas between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Adapter {
    /// How it adds to a weight.
    pub kind: AdapterKind,
    /// Rows of its first matrix.
    pub rank: u32,
    /// 0: the rank.
    pub alpha: f64,
    /// Of the adapter's input.
    pub dropout: f64,
    /// Empty: every linear layer and experts.
    pub targets: String,
    /// What gets none.
    pub except: String,
    /// What trains as it is.
    pub saved: String,
    /// "PATTERN=8,..."
    pub ranks: String,
    /// "PATTERN=16,..."
    pub alphas: String,
}

impl Default for Adapter {
    fn default() -> Adapter {
        Adapter {
            kind: AdapterKind::Lora,
            rank: 8,
            alpha: 0.0,
            dropout: 0.0,
            targets: String::new(),
            except: String::new(),
            saved: String::new(),
            ranks: String::new(),
            alphas: String::new(),
        }
    }
}
