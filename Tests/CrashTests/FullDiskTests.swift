import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// A disk without room: nothing is stored, everything is served, and it goes on by itself when there is room again.
@Suite("A full disk", .serialized)
struct FullDiskTests {
    private static let isOff = ProcessInfo.processInfo.environment["LARDER_CRASH_DISK"] == "off"
    /// A file system of one's own, which no other process sees, and which is gone with the process.
    private static let isMountAllowed =
        (try? Program(["unshare", "--user", "--map-root-user", "--mount", "true"], logs: nil))
        .map { $0.end(within: 10) == 0 } ?? false

    @Test(.enabled(if: !isOff, "LARDER_CRASH_DISK=off"), .timeLimit(.minutes(3)))
    func `files that may not grow: the proxy passes through, says so, and comes back`() async throws {
        let faults = try await blocking {
            // A limit that the process can be freed of by whoever started it.
            try FullDisk.with(wrapper: ["prlimit", "--fsize=\(3 << 20):", "--"]) { disk in
                try disk.fill()
                try disk.allow(fileBytes: "unlimited")
                try disk.recover()
                try disk.killAndVerify()
            }
        }
        #expect(faults == [])
    }

    @Test(.enabled(if: !isOff, "LARDER_CRASH_DISK=off"), .timeLimit(.minutes(3)))
    func `what is purged while nothing can be written does not come back after a kill`() async throws {
        let faults = try await blocking {
            try FullDisk.with(wrapper: ["prlimit", "--fsize=\(3 << 20):", "--"]) { disk in
                try disk.fill()
                try disk.purgeAll()
                try disk.killAndVerify()
            }
        }
        #expect(faults == [])
    }

    @Test(.enabled(if: !isOff, "LARDER_CRASH_DISK=off"), .timeLimit(.minutes(3)))
    func `a purge of which nothing could be written down is not acknowledged, or holds after a kill`() async throws {
        let faults = try await blocking {
            try FullDisk.with(wrapper: []) { disk in
                try disk.store(30)
                try disk.allow(fileBytes: "0")
                try disk.purgeAll()
                try disk.killAndVerify()
            }
        }
        #expect(faults == [])
    }

    @Test(
        .enabled(if: !isOff, "LARDER_CRASH_DISK=off"),
        .enabled(if: isMountAllowed, "this user may not mount a file system of its own (unshare --user --mount)"),
        .timeLimit(.minutes(3)))
    func `a file system without room: the proxy passes through, says so, and comes back`() async throws {
        let faults = try await blocking {
            let mount = "mount -t tmpfs -o size=24m,mode=700 larder \"$0\" && exec setpriv --pdeathsig KILL -- \"$@\""
            return try FullDisk.with(
                wrapper: ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, FullDisk.storePlace]
            ) { disk in
                // Seen from outside, the process's file systems are below its root.
                let ballast = "/proc/\(disk.larder.program.pid)/root\(disk.parent)/ballast"
                try Data(count: 12 << 20).write(to: URL(fileURLWithPath: ballast))
                try disk.fill()
                try FileManager.default.removeItem(atPath: ballast)
                try disk.recover()
            }
        }
        #expect(faults == [])
    }
}

/// A proxy whose disk fills up before the store has its size.
private final class FullDisk {
    /// Stands in a wrapper for the directory that the store is in.
    static let storePlace = "STORE"

    let directory: String
    /// Where the store is.
    let parent: String
    private(set) var larder: Larder
    private let origin: Origin
    private var load: Load
    private var asked: [Resource] = []
    private let order: Larder.Order

    /// - Returns: what was wrong.
    static func with(wrapper: [String], _ body: (FullDisk) throws -> Void) throws -> [String] {
        let directory = try makeTemporaryDirectory("larder-full")
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let disk = try FullDisk(directory, wrapper)
        defer {
            disk.larder.program.signal(SIGKILL)
            _ = disk.larder.program.end(within: 20)
            disk.origin.close()
        }
        do { try body(disk) } catch { disk.load.world.fault("\(error)") }
        return disk.load.world.faults
    }

    /// An expectation on a thread that is none of the test's.
    func expect(_ holds: Bool, _ text: @autoclosure () -> String) {
        if !holds { load.world.fault(text()) }
    }

    private init(_ directory: String, _ wrapper: [String]) throws {
        self.directory = directory
        let parent = "\(directory)/disk"
        self.parent = parent
        try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        order = Larder.Order(
            directory: directory, disk: .init(path: "\(parent)/store", sizeMiB: 200),
            wrapper: wrapper.map { $0 == Self.storePlace ? parent : $0 })
        let world = World()
        origin = try Origin(world)
        larder = try Larder(order)
        load = Load(world, origin, larder, resourceCount: 1000)
    }

    /// What is stored without more ado; not large, so that a limit of the files' length is met by what they share.
    private var resources: some Sequence<Resource> {
        (0..<1000).lazy.map { Resource(number: $0) }.filter { !$0.isVaried && !$0.isAlwaysValidated && !$0.isLarge }
    }

    private func askWhole(_ resource: Resource) throws {
        let answer = try load.ask(Question(resource), over: try larder.connect())
        asked.append(resource)
        expect(answer.status == 200, "\(resource.path): \(answer.status)")
    }

    private func state() throws -> (isOn: Bool, text: String) {
        guard let disk = Watch.disk(try larder.statistics()) else { throw Failure(description: "/stats has no disk") }
        let text = "\(disk["state"] ?? "nothing")"
        return (text == "on", text)
    }

    /// Until it is off.
    func fill() throws {
        expect(try state().isOn, "off from the start")
        var rest = resources.makeIterator()
        _ = try eventually("the disk is off; it said: \(larder.program.errors)", within: 60) { () -> Bool? in
            if try !state().isOn { return true }
            guard let resource = rest.next() else { return nil }
            try askWhole(resource)
            return nil
        }
        // Serves what it has and what it has not.
        for number in [0, 1, 2, 900, 901] { try askWhole(Resource(number: number)) }
        expect(larder.program.errors.contains("disk"), "the log does not say so: \(larder.program.errors)")
        let metrics = String(decoding: try larder.admin("GET", "/metrics").body, as: UTF8.self)
        expect(metrics.contains("larder_disk_up"), "/metrics does not say whether the disk is on")
        let health = try larder.admin("GET", "/health")
        let text = String(decoding: health.body, as: UTF8.self)
        expect(health.status == 200 && text.contains("disk"), "/health: \(health.status) \(text)")
    }

    /// Sets the length that the process may give to files.
    func allow(fileBytes: String) throws {
        let words = ["prlimit", "--pid", "\(larder.program.pid)", "--fsize=\(fileBytes):"]
        let program = try Program(words, logs: "\(directory)/prlimit")
        guard program.end(within: 10) == 0 else { throw Failure(description: "\(words): \(program.errors)") }
    }

    /// So many are in the book.
    func store(_ count: Int) throws {
        let watch = Watch(larder, sync: .milliseconds(order.disk?.syncMilliseconds ?? 0))
        for resource in resources.prefix(count) { try askWhole(resource) }
        try watch.waitUntilCommitted()
        watch.stop()
    }

    /// There is room again: it writes by itself, and what it wrote outlives it.
    func recover() throws {
        _ = try eventually("the disk is on again; it said: \(larder.program.errors)", within: 30) {
            try state().isOn ? true : nil
        }
        let watch = Watch(larder, sync: .milliseconds(order.disk?.syncMilliseconds ?? 0))
        let fresh = Array(resources.suffix(40))
        for resource in fresh { try askWhole(resource) }
        try watch.waitUntilCommitted()
        watch.stop()
        let stored = Watch.disk(try larder.statistics())?["objects"] as? Int ?? -1
        expect(stored >= fresh.count, "\(stored) objects are stored")
    }

    /// Whatever was stored until now has changed, and the proxy is told so. A purge that can not be made to last is to say so.
    func purgeAll() throws {
        let changed = asked.map { ($0.number, load.world.change($0.number)) }
        guard try larder.purge(["prefix": "http://127.0.0.1:\(origin.port)/"]) else { return }
        for (number, version) in changed { load.world.told(number, version: version, isDurable: true) }
    }

    /// The next life has room.
    func killAndVerify() throws {
        larder.program.signal(SIGKILL)
        guard larder.program.end(within: 20) != nil else { throw Failure(description: "SIGKILL did not kill") }
        _ = load.world.killed(committed: ContinuousClock.now)
        var order = order
        order.wrapper = []
        larder = try Larder(order)
        load = Load(load.world, origin, larder, resourceCount: 1000)
        for resource in Set(asked) { try askWhole(resource) }
    }
}
