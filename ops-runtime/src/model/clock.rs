//! The time of day, for timestamps.

/// Milliseconds since the Unix epoch; a clock before it counts as 0.
///
/// The coarse clock: it is as of the last tick of the system, 1 to 10 ms ago, and costs a tenth of an exact one.
#[cfg(all(feature = "registry", any(target_os = "android", target_os = "linux")))]
#[inline]
pub(super) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000)
}

/// Milliseconds since the Unix epoch; a clock before it counts as 0.
#[cfg(not(all(feature = "registry", any(target_os = "android", target_os = "linux"))))]
#[inline]
pub(super) fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Not `as_millis`, whose 128 bits would slow down every call.
    now.as_secs().saturating_mul(1000).saturating_add(u64::from(now.subsec_millis()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::now;

    #[test]
    fn the_time_is_now_and_never_later() {
        for _ in 0..1000 {
            let read = UNIX_EPOCH + Duration::from_millis(now());
            let exact = SystemTime::now();
            assert!(read <= exact && exact < read + Duration::from_secs(1), "{read:?} {exact:?}");
        }
    }

    #[test]
    fn the_time_does_not_go_back() {
        let times: Vec<u64> = (0..1000).map(|_| now()).collect();
        assert!(times.is_sorted());
    }
}
