import EventLoop
import Foundation
import Glibc
import Testing

@testable import Disk

/// Numbers for docs/performance.md: only with LARDER_MEASURE=1, in a release build.
@Suite(
    "What a disk store costs", .serialized, .enabled(if: ProcessInfo.processInfo.environment["LARDER_MEASURE"] == "1"))
struct DiskStoreMeasureTests {
    /// Of the whole process.
    private func cpu() -> Double {
        var usage = rusage()
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
    }

    private func resident(_ name: String) -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
        return (Int(line.split(separator: " ").dropFirst().first ?? "") ?? 0) << 10
    }

    @Test func `storing, starting, finding`() throws {
        let count = Int(ProcessInfo.processInfo.environment["LARDER_OBJECTS"] ?? "") ?? 1_000_000
        let room = DiskStoreTestRoom()
        let options = DiskOptions(
            path: room.path, size: 64 << 30, pinned: 1 << 30, hash: DiskStoreTestRoom.hash,
            log: { print("   ", $0.text) })
        var store = try DiskStore.open(options, calls: SystemCalls())
        store.waitUntilLoaded()
        let body = SegmentTestBody([UInt8](repeating: 7, count: 1024), piece: 4096)
        let head = [UInt8](repeating: 3, count: 300)
        let attributes = ObjectAttributes.of(.permanent)
        let keys = (0..<count).map { Array("http://www.host\($0 % 1000).example/some/path/\($0)/file.js".utf8) }
        let hashes = keys.map(DiskStoreTestRoom.hash)
        var busy = 0
        let (cpuBefore, begin) = (cpu(), ContinuousClock.now)
        var inStore = Duration.zero
        for number in 0..<count {
            let object = PackedObject(
                id: store.nextID(), hash: hashes[number], key: keys[number], attributes: attributes, head: head,
                body: body)
            let before = ContinuousClock.now
            var outcome = store.store(object)
            inStore += before.duration(to: .now)
            while outcome == .busy {
                busy += 1
                usleep(1000)
                outcome = store.store(object)
            }
            #expect(outcome == .taken)
            if number % 20 == 0 { usleep(100) }  // a pace that the writer keeps up with
        }
        #expect(store.flush())
        let perObject = (cpu() - cpuBefore) / Double(count) * 1e6
        print("storing: \(perObject) µs CPU of all threads per object of 1 KiB, \(inStore / count) of it in store()")
        print("    \(begin.duration(to: .now)) in all, \(busy) times busy, \(store.statistics.commits) commits")
        print("    \(store.statistics)")
        store.close()
        let anonymousBefore = resident("RssAnon")
        let openedAt = ContinuousClock.now
        let cpuOpen = cpu()
        store = try DiskStore.open(options, calls: SystemCalls())
        print("start: open \(openedAt.duration(to: .now))")
        store.waitUntilLoaded()
        print("start: loaded \(openedAt.duration(to: .now)), \(cpu() - cpuOpen) s CPU")
        print("memory: \(Double(resident("RssAnon") - anonymousBefore) / Double(count)) anonymous bytes per object")
        #expect(store.statistics.objectCount == count)
        let probe = ContinuousClock.now
        var found = 0
        for hash in hashes { if case .places = store.find(hash) { found += 1 } }
        print("find: \(probe.duration(to: .now) / count) each")
        #expect(found == count)
        let buffer = BytesInMemory(length: 1024)
        let reading = ContinuousClock.now
        var read = 0
        for number in stride(from: 0, to: count, by: 10) {
            guard case .places(let places) = store.find(hashes[number]) else { continue }
            let head = try store.readHead(places[0], waits: true)
            let outcome = unsafe store.readBody(
                of: head.place, checksums: head.checksums, offset: 0, into: buffer.room, waits: true)
            if outcome == .done { read += 1 }
        }
        print("find, head and body: \(reading.duration(to: .now) / read) each")
        store.close()
    }
}
