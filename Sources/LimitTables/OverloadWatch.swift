import Accounts
import EventLoop
import Glibc
package import Limiting
import Message
import Synchronization

/// What all workers know of the load. The first worker looks once a second.
package final class OverloadWatch: Sendable {
    private let policy = Locked(OverloadPolicy())
    private let present = Atomic<Int>(OverloadPolicy.State.calm.rawValue)
    /// Readings in place of those of the system, for tests.
    private let assumed = Locked<(memory: OverloadPolicy.Level, descriptors: OverloadPolicy.Level)?>(nil)

    package init() {}

    package var state: OverloadPolicy.State {
        OverloadPolicy.State(rawValue: present.load(ordering: .relaxed)) ?? .calm
    }

    package func assume(memory: OverloadPolicy.Level, descriptors: OverloadPolicy.Level) {
        assumed.withLock { $0 = (memory, descriptors) }
    }

    /// Reads what is used, and tells the log of a change. It costs some small reads of files in memory.
    ///
    /// - Parameter memoryMax: `limits.memory_max`. If the control group has a limit as well, the smaller one counts.
    package func look(memoryMax: UInt64?) {
        let (memory, descriptors) =
            assumed.withLock { $0 } ?? (OverloadWatch.memory(limit: memoryMax), OverloadWatch.descriptors)
        guard let next = policy.withLock({ $0.note(memory: memory, descriptors: descriptors) }) else { return }
        present.store(next.rawValue, ordering: .relaxed)
        let levels = "memory \(memory.percent)%, descriptors \(descriptors.percent)%"
        switch next {
        case .calm: Diagnostics.info("load: calm again (\(levels))")
        case .strained: Diagnostics.warning("load: strained, idle connections are closed (\(levels))")
        case .overloaded:
            Diagnostics.error("load: overloaded, new connections and requests are refused (\(levels))")
        }
    }

    // MARK: readings

    /// The memory that the system cannot take back, of what the configuration and the control group (version 2) allow.
    private static func memory(limit: UInt64?) -> OverloadPolicy.Level {
        // Not what is mapped from files on a disk. The longer bodies in memory are in a file without one (`PageArena`).
        // Bytes, not characters: a worker does this between two requests.
        let status = bytes(of: "/proc/self/status").split(separator: UInt8(ascii: "\n"))
        let kibibytes = ["RssAnon:", "RssShmem:"].reduce(UInt64(0)) { sum, name in
            let line = status.first { $0.starts(with: name.utf8) } ?? []
            let digits = line.dropFirst(name.utf8.count).drop { !isDigit($0) }.prefix(while: isDigit)
            return sum + (UInt64(String(decoding: digits, as: UTF8.self)) ?? 0)
        }
        return OverloadPolicy.Level(used: kibibytes << 10, limit: [limit, memoryLimit].compactMap { $0 }.min())
    }

    /// Of the control group as this process sees it: in a container that is the root.
    private static let memoryLimit: UInt64? = {
        let line = text("/proc/self/cgroup").split(separator: "\n").first { $0.hasPrefix("0::") }
        let path = line.map { String($0.dropFirst(3)) } ?? "/"
        return number(in: "/sys/fs/cgroup\(path == "/" ? "" : path)/memory.max", word: 0)
            ?? number(in: "/sys/fs/cgroup/memory.max", word: 0)
    }()

    /// The kernel gives out the lowest number that is free, so the next one tells how many are in use.
    private static var descriptors: OverloadPolicy.Level {
        var limits = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0 else {
            return OverloadPolicy.Level(used: 0, limit: nil)
        }
        let next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
        guard next >= 0 else {
            return OverloadPolicy.Level(used: UInt64(limits.rlim_cur), limit: UInt64(limits.rlim_cur))
        }
        close(next)
        return OverloadPolicy.Level(used: UInt64(next), limit: UInt64(limits.rlim_cur))
    }

    /// Nil if the file or the word is not there, or is no number, such as `max`.
    private static func number(in path: String, word: Int) -> UInt64? {
        let words = text(path).split(whereSeparator: { $0 == " " || $0 == "\n" })
        return words.indices.contains(word) ? UInt64(words[word]) : nil
    }

    private static func text(_ path: String) -> String { String(decoding: bytes(of: path), as: UTF8.self) }

    private static func bytes(of path: String) -> [UInt8] {
        let fd = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { return [] }
        defer { close(fd) }
        return unsafe [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
            unsafe count = max(0, Glibc.read(fd, buffer.baseAddress, buffer.count))
        }
    }
}
