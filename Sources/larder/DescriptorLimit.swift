import Accounts
import EventLoop
import Glibc

/// The number of files and connections that this process may have open: the limit `RLIMIT_NOFILE`.
///
/// The kernel enforces the soft limit. Distributions set it low (1024) for old programs, and let a process raise it to the hard limit.
/// Larder sizes nothing by it.
enum DescriptorLimit {
    /// A higher limit would only let a mistake use more.
    private static let wanted: UInt64 = 65_536
    /// A miss takes two descriptors, a hit one. With fewer than this, one or two browsers can use them up.
    private static let sensible: UInt64 = 1024

    /// The soft limit to ask for. Returns nil if it cannot be raised.
    static func raised(soft: UInt64, hard: UInt64) -> UInt64? {
        let target = min(hard, wanted)
        return target > soft ? target : nil
    }

    /// The warning about a limit that is too low. Returns nil if it is high enough.
    static func warning(soft: UInt64) -> String? {
        guard soft < sensible else { return nil }
        return
            "this process may open \(soft) files and connections only; raise the hard limit (ulimit -Hn, LimitNOFILE) to \(wanted)"
    }

    /// Raises the soft limit of this process. Call it once, before any thread is started.
    static func raise() {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        if let target = raised(soft: UInt64(limit.rlim_cur), hard: UInt64(limit.rlim_max)) {
            let before = limit.rlim_cur
            limit.rlim_cur = rlim_t(target)
            if unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 {
                Diagnostics.debug("the limit of open files stays at \(before): \(systemErrorText(errno))")
                limit.rlim_cur = before
            }
        }
        if let text = warning(soft: UInt64(limit.rlim_cur)) { Diagnostics.warning(text) }
    }
}
