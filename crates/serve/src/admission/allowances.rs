//! How much one token and one address may have: connections at a time, prompts and bytes in a minute. So many
//! callers are remembered and no more.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::limits::{CALLERS, CONNECTION_RETRY};

const MINUTE: f64 = 60.0;

/// `None`: as much as the server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerLimits {
    /// Connections and streams of chats at a time.
    pub connections: Option<u32>,
    pub prompts_per_minute: Option<u32>,
    /// What they send.
    pub bytes_per_minute: Option<u64>,
}

/// Both hold for each caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServeLimits {
    pub per_token: CallerLimits,
    pub per_address: CallerLimits,
}

/// There is no more at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimitReached {
    pub(super) what: &'static str,
    pub(super) retry: Duration,
}

/// Whose limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LimitedCaller {
    Token(Arc<str>),
    Address(IpAddr),
}

#[derive(Debug)]
pub(super) struct Allowances {
    limits: ServeLimits,
    /// Why a lock: requests come side by side. Held for sums only.
    callers: Mutex<HashMap<LimitedCaller, CallerUse>>,
}

#[derive(Clone, Copy, Debug)]
struct CallerUse {
    connections: u32,
    prompts: FilledAllowance,
    bytes: FilledAllowance,
}

/// What is spent comes back evenly over a minute.
#[derive(Clone, Copy, Debug)]
struct FilledAllowance {
    spent: f64,
    at: Instant,
}

impl FilledAllowance {
    /// What is still spent of a minute's worth.
    fn now(&mut self, per_minute: f64, now: Instant) -> f64 {
        let back = now.duration_since(self.at).as_secs_f64() * per_minute / MINUTE;
        self.spent = (self.spent - back).max(0.0);
        self.at = now;
        self.spent
    }

    /// How long until there is room for so much; `None`: there is.
    fn wait(&mut self, per_minute: f64, room: f64, now: Instant) -> Option<Duration> {
        let over = self.now(per_minute, now) + room - per_minute;
        (over > 0.0).then(|| Duration::from_secs_f64((over * MINUTE / per_minute).max(0.001)))
    }
}

/// Held as long as the connection.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    allowances: Arc<Allowances>,
    callers: Vec<LimitedCaller>,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut known = self.allowances.lock();
        for caller in &self.callers {
            if let Some(used) = known.get_mut(caller) {
                used.connections = used.connections.saturating_sub(1);
            }
        }
    }
}

impl Allowances {
    pub(super) fn new(limits: ServeLimits) -> Self {
        Self { limits, callers: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LimitedCaller, CallerUse>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those with limits among the two that a request stands for.
    fn limited(&self, token: &Arc<str>, address: Option<IpAddr>) -> Vec<(LimitedCaller, CallerLimits)> {
        let none = CallerLimits::default();
        let address =
            address.map(|address| (LimitedCaller::Address(network(address)), self.limits.per_address));
        let token = (LimitedCaller::Token(token.clone()), self.limits.per_token);
        std::iter::once(token).chain(address).filter(|(_, limits)| *limits != none).collect()
    }

    /// Asks for all of them before anything is spent for one.
    fn with(
        &self,
        callers: &[(LimitedCaller, CallerLimits)],
        what: &'static str,
        wait: impl Fn(&mut CallerUse, &CallerLimits, Instant) -> Option<Duration>,
        spend: impl Fn(&mut CallerUse),
    ) -> Result<(), LimitReached> {
        let now = Instant::now();
        let mut known = self.lock();
        forget_idle(&mut known, &self.limits, now);
        let mut longest = None;
        for (caller, limits) in callers {
            longest = longest.max(wait(known.entry(caller.clone()).or_insert_with(unused), limits, now));
        }
        if let Some(retry) = longest {
            return Err(LimitReached { what, retry });
        }
        for (caller, _) in callers {
            if let Some(used) = known.get_mut(caller) {
                spend(used);
            }
        }
        Ok(())
    }

    pub(super) fn connect(
        allowances: &Arc<Self>,
        token: &Arc<str>,
        address: Option<IpAddr>,
    ) -> Result<ConnectionPlace, LimitReached> {
        let callers = allowances.limited(token, address);
        let full = |used: &mut CallerUse, limits: &CallerLimits, _: Instant| {
            limits.connections.filter(|most| used.connections >= *most).map(|_| CONNECTION_RETRY)
        };
        allowances.with(&callers, "connections", full, |used| used.connections += 1)?;
        let callers = callers.into_iter().map(|(caller, _)| caller).collect();
        Ok(ConnectionPlace { allowances: allowances.clone(), callers })
    }

    pub(super) fn prompt(&self, token: &Arc<str>, address: Option<IpAddr>) -> Result<(), LimitReached> {
        let wait = |used: &mut CallerUse, limits: &CallerLimits, now: Instant| {
            limits.prompts_per_minute.and_then(|most| used.prompts.wait(f64::from(most), 1.0, now))
        };
        let callers = self.limited(token, address);
        self.with(&callers, "prompts", wait, |used| used.prompts.spent += 1.0)
    }

    /// A message is taken whole or not: who has anything left may have more, and pays for it afterwards.
    pub(super) fn check_bytes(&self, token: &Arc<str>, address: Option<IpAddr>) -> Result<(), LimitReached> {
        let wait = |used: &mut CallerUse, limits: &CallerLimits, now: Instant| {
            limits.bytes_per_minute.and_then(|most| used.bytes.wait(most as f64, 1.0, now))
        };
        self.with(&self.limited(token, address), "bytes", wait, |_| ())
    }

    pub(super) fn spend_bytes(&self, token: &Arc<str>, address: Option<IpAddr>, bytes: usize) {
        let mut known = self.lock();
        for (caller, limits) in self.limited(token, address) {
            if let Some(most) = limits.bytes_per_minute {
                let used = known.entry(caller).or_insert_with(unused);
                // What has come back until now is no credit for what is sent now.
                used.bytes.now(most as f64, Instant::now());
                used.bytes.spent += bytes as f64;
            }
        }
    }
}

fn unused() -> CallerUse {
    let full = FilledAllowance { spent: 0.0, at: Instant::now() };
    CallerUse { connections: 0, prompts: full, bytes: full }
}

/// Whoever has nothing open and everything back is as good as never seen.
fn forget_idle(known: &mut HashMap<LimitedCaller, CallerUse>, limits: &ServeLimits, now: Instant) {
    if known.len() < CALLERS {
        return;
    }
    known.retain(|caller, used| {
        let limits = match caller {
            LimitedCaller::Token(_) => &limits.per_token,
            LimitedCaller::Address(_) => &limits.per_address,
        };
        let (prompts, bytes) = (limits.prompts_per_minute.unwrap_or(0), limits.bytes_per_minute.unwrap_or(0));
        used.connections > 0
            || used.prompts.now(f64::from(prompts), now) > 0.0
            || used.bytes.now(bytes as f64, now) > 0.0
    });
}

/// One machine has as many addresses of IPv6 as it likes, all in one network.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowances(limits: CallerLimits) -> Arc<Allowances> {
        Arc::new(Allowances::new(ServeLimits { per_token: limits, per_address: limits }))
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn prompts_come_back_over_a_minute() {
        let limited = allowances(CallerLimits { prompts_per_minute: Some(2), ..CallerLimits::default() });
        let (ci, other, here) = ("ci".into(), "other".into(), address("127.0.0.1"));
        assert_eq!(limited.prompt(&ci, here), Ok(()));
        assert_eq!(limited.prompt(&ci, here), Ok(()));
        let refused = limited.prompt(&ci, here).unwrap_err();
        assert_eq!((refused.what, refused.retry), ("prompts", Duration::from_secs(30)));
        // Another token of the same address is held to the address.
        assert!(limited.prompt(&other, here).is_err());
        assert_eq!(limited.prompt(&other, address("127.0.0.2")), Ok(()));
        tokio::time::advance(refused.retry).await;
        assert_eq!(limited.prompt(&ci, here), Ok(()));
        assert!(limited.prompt(&ci, here).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_paid_afterwards() {
        let limited = allowances(CallerLimits { bytes_per_minute: Some(600), ..CallerLimits::default() });
        let ci = "ci".into();
        assert_eq!(limited.check_bytes(&ci, None), Ok(()));
        limited.spend_bytes(&ci, None, 1_200);
        let wait = limited.check_bytes(&ci, None).unwrap_err().retry;
        assert!(wait > Duration::from_secs(60) && wait < Duration::from_secs(61), "{wait:?}");
        tokio::time::advance(wait).await;
        assert_eq!(limited.check_bytes(&ci, None), Ok(()));
    }

    #[tokio::test]
    async fn a_place_comes_back_with_its_connection() {
        let limited = allowances(CallerLimits { connections: Some(2), ..CallerLimits::default() });
        let (ci, here) = ("ci".into(), address("2001:db8::1"));
        let first = Allowances::connect(&limited, &ci, here).unwrap();
        let _second = Allowances::connect(&limited, &ci, here).unwrap();
        assert_eq!(Allowances::connect(&limited, &ci, None).unwrap_err().what, "connections");
        // The same network.
        let other = "other".into();
        assert!(Allowances::connect(&limited, &other, address("2001:db8::2")).is_err());
        assert!(Allowances::connect(&limited, &other, address("2001:db8:1::2")).is_ok());
        drop(first);
        assert!(Allowances::connect(&limited, &ci, here).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_callers_are_remembered_and_no_more() {
        let limited = allowances(CallerLimits { prompts_per_minute: Some(60), ..CallerLimits::default() });
        let token: Arc<str> = "ci".into();
        for number in 0..3 * u32::try_from(CALLERS).unwrap() {
            tokio::time::advance(Duration::from_millis(1_100)).await;
            limited.prompt(&token, Some(IpAddr::from(number.to_be_bytes()))).unwrap();
        }
        assert!(limited.lock().len() <= CALLERS + 2);
    }
}
