import Foundation
import Glibc
import Testing

/// What is large goes to the disk as it comes, and leaves memory when it is written.
@Suite("Large bodies and little memory", .serialized)
struct SmallMemoryTests {
    private static let isOff = ProcessInfo.processInfo.environment["LARDER_CRASH_DISK"] == "off"

    @Test(.enabled(if: !isOff, "LARDER_CRASH_DISK=off"), .timeLimit(.minutes(3)))
    func `a download that is larger than the memory is whole, and so is what comes from the disk afterwards`()
        async throws
    {
        let faults = try await blocking {
            let directory = try makeTemporaryDirectory("larder-small")
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let world = World()
            let origin = try Origin(world)
            defer { origin.close() }
            let order = Larder.Order(
                directory: directory, memoryMiB: 1, disk: .init(path: "\(directory)/store", sizeMiB: 200))
            let larder = try Larder(order)
            defer {
                larder.program.signal(SIGKILL)
                _ = larder.program.end(within: 20)
            }
            let load = Load(world, origin, larder, resourceCount: 0)
            let large = (0..<400).map { Resource(number: $0) }
                .filter { $0.isLarge && !$0.isChunked && !$0.isVaried && $0.validator != .none }
            for _ in 1...2 {
                inThreads(2) { thread in
                    for (index, resource) in large.enumerated() where index % 2 == thread {
                        do { _ = try load.ask(Question(resource), over: try larder.connect()) } catch {
                            world.fault("\(resource.path): \(error)".prefix(300).description)
                        }
                    }
                }
            }
            return world.faults.map { String($0.prefix(300)) }
        }
        #expect(faults == [])
    }
}
