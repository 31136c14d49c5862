//! Where the memory for tensors comes from.
use crate::handle::{blank, called};
use crate::host::Hooks;
use cairn_sys as sys;
use std::alloc::Layout;
use std::os::raw::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Gives the memory for tensors: arenas, the host tier, staging. It is called from any thread, and must not call cairn.
/// A panic inside it counts as having no memory.
///
/// # Safety
/// `allocate` returns a block of `layout`'s size and alignment that nothing else uses until `release` gets it back.
pub unsafe trait Allocator: Send + Sync + 'static {
    /// A block, or `None` where there is none: the call that needed it fails with
    /// [`Status::OutOfMemory`](crate::Status::OutOfMemory).
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;
    /// Takes a block back.
    ///
    /// # Safety
    /// `block` came from `allocate` of the same allocator and layout, and is not used any more.
    unsafe fn release(&self, block: NonNull<u8>, layout: Layout);
}

/// The system's memory up to a limit that all objects of an instance share, counted. Clones are the same account.
///
/// ```
/// use cairn::{Instance, InstanceOptions, Limited};
/// let memory = Limited::new(64 << 20);
/// let instance = Instance::with(InstanceOptions::new().allocator(memory.clone()))?;
/// assert_eq!(memory.in_use_bytes(), 0);
/// # drop(instance);
/// # Ok::<(), cairn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Limited(Arc<Account>);

#[derive(Debug)]
struct Account {
    limit: u64,
    in_use: AtomicU64,
    peak: AtomicU64,
}

impl Limited {
    /// An account of at most `bytes` at once.
    pub fn new(bytes: u64) -> Limited {
        Limited(Arc::new(Account { limit: bytes, in_use: AtomicU64::new(0), peak: AtomicU64::new(0) }))
    }

    /// Bytes taken and not given back.
    pub fn in_use_bytes(&self) -> u64 {
        self.0.in_use.load(Ordering::Relaxed)
    }

    /// Most bytes that were taken at once.
    pub fn peak_bytes(&self) -> u64 {
        self.0.peak.load(Ordering::Relaxed)
    }
}

// Blocks are the system allocator's, with the layout that was asked for.
unsafe impl Allocator for Limited {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let account = &*self.0;
        let bytes = layout.size() as u64;
        let within = |in_use: u64| in_use.checked_add(bytes).filter(|&sum| sum <= account.limit);
        let before = account.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).ok()?;
        // A layout of no bytes is none that the system's allocator takes.
        let block = match layout.size() {
            0 => None,
            _ => NonNull::new(unsafe { std::alloc::alloc(layout) }),
        };
        match block {
            Some(_) => account.peak.fetch_max(before + bytes, Ordering::Relaxed),
            None => account.in_use.fetch_sub(bytes, Ordering::Relaxed),
        };
        block
    }

    unsafe fn release(&self, block: NonNull<u8>, layout: Layout) {
        std::alloc::dealloc(block.as_ptr(), layout);
        self.0.in_use.fetch_sub(layout.size() as u64, Ordering::Relaxed);
    }
}

/// The header's struct for the allocator among an instance's hooks.
pub(crate) fn raw(hooks: &Arc<Hooks>) -> sys::cairn_allocator_t {
    let mut raw: sys::cairn_allocator_t = blank();
    raw.user = Arc::as_ptr(hooks) as *mut c_void;
    raw.allocate = Some(allocate);
    raw.release = Some(release);
    raw
}

/// # Safety
/// `user` is the hooks of an instance that lives, with an allocator.
unsafe extern "C" fn allocate(user: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void {
    let hooks = &*(user as *const Hooks);
    let block = called(|| {
        let layout = Layout::from_size_align(bytes, alignment).ok();
        Ok(hooks.allocator.as_ref().zip(layout).and_then(|(allocator, layout)| allocator.allocate(layout)))
    });
    block.ok().flatten().map_or(std::ptr::null_mut(), |block| block.as_ptr().cast())
}

/// # Safety
/// As `allocate`; `block` came from it with these sizes.
unsafe extern "C" fn release(user: *mut c_void, block: *mut c_void, bytes: usize, alignment: usize) {
    let hooks = &*(user as *const Hooks);
    let _ = called(|| {
        let layout = Layout::from_size_align(bytes, alignment).ok();
        let parts = hooks.allocator.as_ref().zip(layout).zip(NonNull::new(block.cast()));
        if let Some(((allocator, layout), block)) = parts {
            allocator.release(block, layout);
        }
        Ok(())
    });
}
