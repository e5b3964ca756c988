import Glibc
import Server

/// How many files and connections this process may have open: the limit `RLIMIT_NOFILE`.
///
/// The soft limit is what counts. Distributions set it low (1024) for the sake of old programs, and let a process raise it to the
/// hard limit. Nothing in Larder is sized by it.
enum DescriptorLimit {
    /// More would only allow a mistake to hold more.
    private static let wanted: UInt64 = 65_536
    /// A miss holds two descriptors, a hit one; below this a browser or two can use up what there is.
    private static let sensible: UInt64 = 1024

    /// The soft limit to ask for. Nil: there is nothing to raise.
    static func raised(soft: UInt64, hard: UInt64) -> UInt64? {
        let target = min(hard, wanted)
        return target > soft ? target : nil
    }

    /// What the operator has to know about a limit that is too low; nil if it is not.
    static func warning(soft: UInt64) -> String? {
        guard soft < sensible else { return nil }
        return
            "this process may open \(soft) files and connections only; raise the hard limit (ulimit -Hn, LimitNOFILE) to \(wanted)"
    }

    /// Raises the soft limit for this process. To be called once, before any thread is started.
    static func raise() {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        if let target = raised(soft: UInt64(limit.rlim_cur), hard: UInt64(limit.rlim_max)) {
            let before = limit.rlim_cur
            limit.rlim_cur = rlim_t(target)
            if unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 {
                Diagnostics.debug("the limit of open files stays at \(before): errno \(errno)")
                limit.rlim_cur = before
            }
        }
        if let text = warning(soft: UInt64(limit.rlim_cur)) { Diagnostics.warning(text) }
    }
}
