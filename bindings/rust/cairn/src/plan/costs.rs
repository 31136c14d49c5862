//! Seconds of ops and links that plans are made with.
use super::Plan;
use crate::enums::Tier;
use crate::error::Result;
use crate::handle::{check, fill, make, Handle};
use crate::host::Host;
use crate::text::Text;
use crate::{Device, Instance, SessionMut};
use cairn_sys as sys;

/// A profile, measured on a machine, or the model of a device that is not there. Without one, plans use rough rates.
///
/// `Send + Sync`: calls that are not `const` in `cairn.h` take it by `&mut`.
///
/// ```
/// # let instance = cairn::Instance::new()?;
/// # let device = instance.device("cpu")?;
/// let costs = cairn::Costs::new(&device)?;
/// let text = costs.json()?;
/// assert!(text.as_str()?.contains("cairn.profile/1"));
/// let again = cairn::Costs::read(&instance, text.as_str()?)?;
/// assert_eq!(again.json()?.as_bytes(), text.as_bytes());
/// # Ok::<(), cairn::Error>(())
/// ```
#[derive(Debug)]
pub struct Costs {
    pub(crate) raw: Handle<sys::cairn_costs_t>,
    _host: Host,
}

// Shared references make const calls only.
unsafe impl Sync for Costs {}

impl Costs {
    /// An empty profile of a device, to be filled by the measuring calls and [`add_run`](Costs::add_run).
    pub fn new(device: &Device) -> Result<Costs> {
        let raw = make(|out, error| unsafe { sys::cairn_costs_create(device.raw.get(), out, error) })?;
        Ok(Costs { raw, _host: device.host.clone() })
    }

    /// Reads JSON, `cairn.profile/1` or `cairn.device-model/1`.
    pub fn read(instance: &Instance, json: &str) -> Result<Costs> {
        let (data, size) = (json.as_ptr().cast(), json.len());
        let raw = make(|out, error| unsafe { sys::cairn_costs_read(instance.raw.get(), data, size, out, error) })?;
        Ok(Costs { raw, _host: instance.host.clone() })
    }

    /// The profile as JSON. Errors: `WrongState` (a device's model).
    pub fn json(&self) -> Result<Text> {
        Text::make(|out, error| unsafe { sys::cairn_costs_json(self.raw.get(), out, error) })
    }

    /// Measures copies to and from a tier, each direction alone and both at once. Takes 256 MiB on the device and as much
    /// on the tier for about a second, in which nothing else should run.
    pub fn measure_link(&mut self, device: &Device, tier: Tier) -> Result<()> {
        let (costs, device) = (self.raw.get(), device.raw.get());
        check(|error| unsafe { sys::cairn_costs_measure_link(costs, device, tier.into(), error) })
    }

    /// Times the kernels that a plan's ops have to choose from on the device, and returns how many ops that were: 0 where
    /// there is nothing to choose, as on the CPU. Plans made with the profile take its choice.
    pub fn measure_kernels(&mut self, plan: &Plan, device: &Device) -> Result<u64> {
        let (costs, plan, device) = (self.raw.get(), plan.raw.get(), device.raw.get());
        fill(0, |out, error| unsafe { sys::cairn_costs_measure_kernels(costs, plan, device, out, error) })
    }

    /// Adds a session's last traced run. Of the step of one micro-batch that it was part of: its seconds as the caller
    /// saw it, and the optimizer's; 0: not known. Errors: `WrongState` (no run was traced).
    pub fn add_run(&mut self, session: &SessionMut<'_>, step_seconds: f64, optimizer_seconds: f64) -> Result<()> {
        let (costs, session) = (self.raw.get(), session.raw());
        check(|error| unsafe { sys::cairn_costs_add_run(costs, session, step_seconds, optimizer_seconds, error) })
    }
}
