//! Pictures: decoded and augmented on threads of the library.
use crate::error::{Error, Result};
use crate::handle::{blank, fill, make, Handle};
use crate::host::Host;
use crate::text::{c_text, Text};
use crate::Instance;
use cairn_sys as sys;

/// What pictures are read, and what is done to them; what each number means stands in `cairn.h`.
#[derive(Clone, Debug)]
#[must_use]
pub struct PictureOptions {
    data: String,
    raw: sys::cairn_pictures_options_t,
}

macro_rules! settings {
    ($($words:literal $name:ident $kind:ty),* $(,)?) => {$(
        #[doc = $words]
        pub fn $name(mut self, value: $kind) -> PictureOptions {
            self.raw.$name = value;
            self
        }
    )*};
}

impl PictureOptions {
    /// Of `data` (`"drawings"`, `"folder:DIR"`, `"mnist:DIR"` ...), `width` x `height` pixels.
    pub fn new(data: &str, width: u32, height: u32) -> PictureOptions {
        let mut raw: sys::cairn_pictures_options_t = blank();
        raw.width = width;
        raw.height = height;
        PictureOptions { data: data.to_owned(), raw }
    }

    settings! {
        "1: the part to evaluate with." test u32,
        "3, or 1: grey." channels u32,
        "A share of the data to train with is the part to evaluate with." held_out f64,
        "Pictures at most; of drawings how many there are." most u64,
        "What all that is drawn comes from." seed u64,
        "Of drawings, 2 to 10." classes u32,
        "1: an order for each epoch." shuffle u32,
        "Threads; 0: the caller's alone." workers u32,
        "Micro-batches that are made ahead." ahead u32,
        "`CAIRN_PICTURES_*`: what becomes of a bad picture." bad u32,
        "`CAIRN_CROP_*`." crop u32,
        "1: bicubic, 0: bilinear." bicubic u32,
        "Black pixels on each side, of the padded crop." padding u32,
        "The shorter side, of the output's, before the rest is cut off." resize f64,
        "Least and most share of a random part." scale [f64; 2],
        "Least and most of its width to its height." ratio [f64; 2],
        "Probability of a mirror image." flip f64,
        "Jitter of brightness." brightness f64,
        "Jitter of contrast." contrast f64,
        "Jitter of saturation." saturation f64,
        "Jitter of hue." hue f64,
        "Ops of RandAugment." randaugment u32,
        "Their magnitude, 0 to 30." magnitude u32,
        "Mixup, of Beta(x, x)." mixup f64,
        "Cutmix, of Beta(x, x)." cutmix f64,
        "What is taken from numbers of 0 to 1." mean [f32; 3],
        "And what they are divided by then." deviation [f32; 3],
    }
}

/// What pictures are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PictureInfo {
    /// Pictures of an epoch.
    pub count: u64,
    /// Different ones that could not be read so far.
    pub bad: u64,
    /// Classes; 0: the data say none.
    pub classes: u32,
    /// Whether each picture has a text.
    pub texts: bool,
}

/// Where a micro-batch goes; what is left out is not wanted.
#[derive(Debug, Default)]
pub struct PictureBatch<'a> {
    /// `[batch, height, width, channels]`.
    pub pixels: Option<&'a mut [f32]>,
    /// `[batch]`; -100: the row holds no picture of a known class.
    pub labels: Option<&'a mut [i32]>,
    /// `[batch]`: the class of what is mixed in.
    pub others: Option<&'a mut [i32]>,
    /// `[batch]`: how much of the row is of its own class.
    pub shares: Option<&'a mut [f32]>,
    /// `[batch]`: numbers for [`Pictures::text`].
    pub items: Option<&'a mut [u64]>,
    /// `[batch, height, width]`.
    pub masks: Option<&'a mut [i32]>,
}

/// Micro-batches of pictures: a pure function of the options and a number, so that resuming costs nothing.
///
/// ```
/// let instance = cairn::Instance::new()?;
/// let options = cairn::PictureOptions::new("drawings", 16, 16).most(100).seed(1);
/// let mut pictures = cairn::Pictures::open(&instance, &options)?;
/// let mut labels = [0; 8];
/// let rows = pictures.batch(3, 8, cairn::PictureBatch { labels: Some(&mut labels), ..Default::default() })?;
/// assert_eq!(rows, 8);
/// assert!(pictures.content()?.as_str()?.ends_with("-100"));
/// assert!(pictures.class(labels[0] as u32)?.as_str()?.len() > 2);
/// # Ok::<(), cairn::Error>(())
/// ```
#[derive(Debug)]
pub struct Pictures {
    raw: Handle<sys::cairn_pictures_t>,
    numbers: usize,
    pixels: usize,
    _host: Host,
}

fn place<T>(buffer: Option<&mut [T]>, wanted: usize, name: &str) -> Result<*mut T> {
    match buffer {
        None => Ok(std::ptr::null_mut()),
        Some(room) if room.len() >= wanted => Ok(room.as_mut_ptr()),
        Some(room) => Err(Error::argument(format!("{name} has room for {}, {wanted} are needed", room.len()))),
    }
}

impl Pictures {
    /// Opens pictures. Errors: `NotFound`, `CorruptFile`, `Unsupported`, `Io`.
    pub fn open(instance: &Instance, options: &PictureOptions) -> Result<Pictures> {
        let data = c_text("data", &options.data)?;
        let mut raw = options.raw;
        raw.data = data.as_ptr();
        let from = instance.raw.get();
        let made = make(|out, error| unsafe { sys::cairn_pictures_open(from, &raw, out, error) })?;
        let pixels = raw.width as usize * raw.height as usize;
        let numbers = pixels * if raw.channels == 1 { 1 } else { 3 };
        Ok(Pictures { raw: made, numbers, pixels, _host: instance.host.clone() })
    }

    /// What they are.
    pub fn info(&mut self) -> Result<PictureInfo> {
        let raw: sys::cairn_pictures_info_t = blank();
        let raw = fill(raw, |out, error| unsafe { sys::cairn_pictures_info(self.raw.get(), out, error) })?;
        Ok(PictureInfo { count: raw.count, bad: raw.bad, classes: raw.classes, texts: raw.texts != 0 })
    }

    /// The name of a class. Errors: `NotFound`.
    pub fn class(&self, number: u32) -> Result<Text> {
        Text::make(|out, error| unsafe { sys::cairn_pictures_class(self.raw.get(), number, out, error) })
    }

    /// The text of a picture, by the number that a micro-batch gave it. Errors: `NotFound`.
    pub fn text(&self, item: u64) -> Result<Text> {
        Text::make(|out, error| unsafe { sys::cairn_pictures_text(self.raw.get(), item, out, error) })
    }

    /// A digest of which pictures there are: of their names, classes and texts, not of their pixels.
    pub fn content(&self) -> Result<Text> {
        Text::make(|out, error| unsafe { sys::cairn_pictures_content(self.raw.get(), out, error) })
    }

    /// Micro-batch `index` since the start of training, of `rows` rows. Returns those that hold pictures.
    pub fn batch(&mut self, index: u64, rows: u32, to: PictureBatch<'_>) -> Result<u32> {
        let count = rows as usize;
        let mut raw: sys::cairn_pictures_batch_t = blank();
        raw.pixels = place(to.pixels, count * self.numbers, "pixels")?;
        raw.labels = place(to.labels, count, "labels")?;
        raw.others = place(to.others, count, "others")?;
        raw.shares = place(to.shares, count, "shares")?;
        raw.items = place(to.items, count, "items")?;
        raw.masks = place(to.masks, count * self.pixels, "masks")?;
        let pictures = self.raw.get();
        fill(0, |out, error| unsafe { sys::cairn_pictures_read(pictures, index, rows, &raw, out, error) })
    }
}
