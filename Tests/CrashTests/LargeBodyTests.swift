import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// What is large goes to the disk as it comes, and leaves memory when it is written.
@Suite("Large bodies and the disk", .serialized)
struct LargeBodyTests {
    private static let isOff = ProcessInfo.processInfo.environment["LARDER_CRASH_DISK"] == "off"

    /// Larger than what is packed, of known length, and the same for all.
    private static func large(_ validator: Set<Resource.Validator>) -> [Resource] {
        (0..<900).map { Resource(number: $0) }.filter {
            $0.isLarge && !$0.isChunked && !$0.isVaried && !$0.isAlwaysValidated && validator.contains($0.validator)
        }
    }

    /// - Returns: what was wrong.
    private func with(
        memoryMiB: Int = 8, _ body: @escaping @Sendable (World, Origin, Larder.Order) throws -> Void
    ) async throws -> [String] {
        try await blocking {
            let directory = try makeTemporaryDirectory("larder-large")
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let world = World()
            let origin = try Origin(world)
            defer { origin.close() }
            let disk = Larder.Order.Disk(path: "\(directory)/store", sizeMiB: 200)
            do {
                try body(world, origin, Larder.Order(directory: directory, memoryMiB: memoryMiB, disk: disk))
            } catch { world.fault("\(error)") }
            return world.faults.map { String($0.prefix(300)) }
        }
    }

    @Test(.enabled(if: !isOff, "LARDER_CRASH_DISK=off"), .timeLimit(.minutes(3)))
    func `a download that is larger than the memory is whole, and so is what comes from the disk afterwards`()
        async throws
    {
        let faults = try await with(memoryMiB: 1) { world, origin, order in
            let larder = try Larder(order)
            defer { larder.kill() }
            let load = Load(world, origin, larder, resourceCount: 0)
            let large = Self.large([.tag, .date, .both])
            for _ in 1...2 {
                inThreads(2) { thread in
                    for (index, resource) in large.enumerated() where index % 2 == thread {
                        do { _ = try load.ask(Question(resource), over: try larder.connect()) } catch {
                            world.fault("\(resource.path): \(error)")
                        }
                    }
                }
            }
        }
        #expect(faults == [])
    }

    @Test(.enabled(if: !isOff, "LARDER_CRASH_DISK=off"), .timeLimit(.minutes(3)))
    func `parts from the middle of what is not stored are stored there, and what is between them follows`()
        async throws
    {
        let faults = try await with { world, origin, order in
            let larder = try Larder(order)
            defer { larder.kill() }
            let load = Load(world, origin, larder, resourceCount: 0)
            for resource in Self.large([.tag]).prefix(4) {
                var question = Question(resource)
                for first in [700_000, 131_072, 900_001, 0] {
                    question.range = .between(first, through: first + 200_000)
                    _ = try load.ask(question, over: try larder.connect())
                }
                _ = try load.ask(Question(resource), over: try larder.connect())
            }
        }
        #expect(faults == [])
    }

    @Test(.enabled(if: !isOff, "LARDER_CRASH_DISK=off"), .timeLimit(.minutes(3)))
    func `what was cut by a kill and can not be asked for in parts is fetched anew, not served up to the cut`()
        async throws
    {
        let faults = try await with { world, origin, order in
            let resource = Self.large([.none])[0]
            origin.hold(resource.number, at: 1_000_000)
            let first = try Larder(order)
            let watch = Watch(first, sync: .milliseconds(200))
            let load = Load(world, origin, first, resourceCount: 0)
            let client = try first.connect()
            try client.send(Question(resource).head(origin: origin.port))
            _ = try eventually("what came is on the disk") {
                // The last block is not whole.
                Watch.disk(try first.statistics())?["stored_bytes"] as? Int ?? 0 >= 900_000 ? true : nil
            }
            try watch.waitUntilCommitted()
            watch.stop()
            load.expectEnd()
            first.kill()
            origin.release(resource.number)
            let second = try Larder(order)
            defer { second.kill() }
            let answer = try Load(world, origin, second, resourceCount: 0)
                .ask(Question(resource), over: try second.connect())
            if !answer.isWhole { world.fault("not whole") }
        }
        #expect(faults == [])
    }
}

extension Larder {
    fileprivate func kill() {
        program.signal(SIGKILL)
        _ = program.end(within: 20)
    }
}
