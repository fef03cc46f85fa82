//! The time of day, for timestamps, the processor time of a thread, and durations as numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    let now = since_epoch();
    // Not `as_millis`, whose 128 bits would slow down every call.
    now.as_secs().saturating_mul(1000).saturating_add(u64::from(now.subsec_millis()))
}

/// The time since the Unix epoch, by the exact clock; a clock before it counts as 0.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The time for which this thread has computed: it stands still while others have the processor.
#[cfg(all(feature = "program", any(target_os = "android", target_os = "linux", target_vendor = "apple")))]
pub(crate) fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// The time since some moment, as the clock of the thread cannot be read here.
#[cfg(all(feature = "program", not(any(target_os = "android", target_os = "linux", target_vendor = "apple"))))]
pub(crate) fn processor_time() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// A duration in milliseconds. One that is too long for the number counts as the largest.
pub(crate) const fn millis(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1000).saturating_add(duration.subsec_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_cut_to_whole_milliseconds() {
        let exactly = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        for duration in [
            Duration::ZERO,
            Duration::from_micros(1_999),
            Duration::from_secs(3_600),
            Duration::from_millis(u64::MAX),
            Duration::from_millis(u64::MAX) + Duration::from_millis(1),
            Duration::MAX,
        ] {
            assert_eq!(millis(duration), exactly(duration), "{duration:?}");
        }
    }

    #[test]
    fn the_time_is_now_and_never_later() {
        for _ in 0..1000 {
            let before = SystemTime::now();
            let read = UNIX_EPOCH + Duration::from_millis(now());
            let after = SystemTime::now();
            assert!(before < read + Duration::from_secs(1) && read <= after, "{before:?} {read:?} {after:?}");
        }
    }

    #[cfg(all(feature = "program", target_os = "linux"))]
    #[test]
    fn only_computing_takes_processor_time() {
        let start = processor_time();
        std::thread::sleep(Duration::from_millis(500));
        let slept = processor_time().saturating_sub(start);
        assert!(slept < Duration::from_millis(200), "{slept:?}");
        let (start, begun) = (std::time::Instant::now(), processor_time());
        while processor_time().saturating_sub(begun) < Duration::from_millis(20) {
            assert!(start.elapsed() < Duration::from_secs(60));
        }
    }

    #[test]
    fn the_time_does_not_go_back() {
        let times: Vec<u64> = (0..1000).map(|_| now()).collect();
        assert!(times.is_sorted());
    }
}
