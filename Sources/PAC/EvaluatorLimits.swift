import CLarder
import Glibc

/// What a process that evaluates PAC files may use. Beyond the memory, the engine ends the process or the evaluation; beyond the processor time
/// the kernel ends the process.
package enum EvaluatorLimits {
    /// For the sockets of `dnsResolve` and the files that name look-up reads.
    private static let filesMax: rlim_t = 32

    /// Takes from this process what evaluating a script does not need: memory beyond the present, writing files, core dumps, other
    /// processes, and descriptors beyond a few.
    ///
    /// - Returns: false if the kernel did not agree. The process should end then.
    package static func apply(memoryBytesMax: Int) -> Bool {
        guard let present = addressSpace() else { return false }
        return limit(RLIMIT_AS, rlim_t(present + memoryBytesMax)) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_CORE, 0)
            && limit(__RLIMIT_NPROC, 0) && limit(RLIMIT_NOFILE, filesMax) && clarder_forbid_privileges() == 0
    }

    /// Allows so much more processor time, for the next question. If the process that asks is gone, nobody else would end a script that loops.
    package static func allowProcessorTime(seconds: Int) -> Bool {
        var usage = rusage()
        guard unsafe getrusage(RUSAGE_SELF.rawValue, &usage) == 0 else { return false }
        let used = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 1
        var limits = rlimit()
        guard unsafe getrlimit(CInt(RLIMIT_CPU.rawValue), &limits) == 0 else { return false }
        limits.rlim_cur = min(rlim_t(used + seconds), limits.rlim_max)
        return unsafe setrlimit(CInt(RLIMIT_CPU.rawValue), &limits) == 0
    }

    private static func limit(_ resource: __rlimit_resource, _ value: rlim_t) -> Bool {
        var limits = rlimit(rlim_cur: value, rlim_max: value)
        return unsafe setrlimit(CInt(resource.rawValue), &limits) == 0
    }

    /// The bytes that this process has mapped (proc(5), statm). Nil if the kernel does not say.
    private static func addressSpace() -> Int? {
        let fd = unsafe open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { return nil }
        defer { _ = close(fd) }
        var buffer = [UInt8](repeating: 0, count: 128)
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(fd, $0.baseAddress, $0.count) }
        guard count > 0, let pages = Int(String(decoding: buffer[..<count].prefix { $0 != 0x20 }, as: UTF8.self)) else {
            return nil
        }
        return pages * sysconf(CInt(_SC_PAGESIZE))
    }
}
