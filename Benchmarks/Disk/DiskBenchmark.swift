import Disk
import Glibc
import Synchronization

/// Fills a store of the disk tier, and opens one, to see what many objects cost.
///
/// `DiskBenchmark fill DIRECTORY COUNT BODY_BYTES` stores objects under URLs of a hundred hosts; `DiskBenchmark open DIRECTORY`
/// prints how long it takes until the store is loaded, and what it holds resident then.
@main
struct DiskBenchmark {
    static func main() {
        let arguments = CommandLine.arguments
        switch (arguments.count, arguments.dropFirst().first) {
        case (5, "fill"):
            guard let count = Int(arguments[3]), let bodyBytes = Int(arguments[4]) else { return usage() }
            fill(arguments[2], count: count, bodyBytes: bodyBytes)
        case (3, "open"): open(arguments[2])
        default: usage()
        }
    }

    private static func usage() {
        print("usage: DiskBenchmark fill DIRECTORY COUNT BODY_BYTES | open DIRECTORY")
        exit(2)
    }

    private static func openStore(_ path: String, size: UInt64) -> DiskStore {
        let options = DiskOptions(
            path: path, size: size, pinned: size / 2, hash: { hash($0) }, log: { print("  \($0.level): \($0.text)") })
        do throws(DiskRefusal) {
            return try DiskStore.open(options, calls: SystemCalls())
        } catch {
            print("\(error)")
            exit(1)
        }
    }

    private static func hash(_ key: [UInt8]) -> UInt64 {
        var sum: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in key { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return sum ^ (sum >> 29)
    }

    // MARK: fill

    private static func fill(_ path: String, count: Int, bodyBytes: Int) {
        let store = openStore(path, size: 64 << 30)
        let body = Constant(length: bodyBytes)
        let start = Reading.now()
        for number in 0..<count {
            let key = Array(
                "http://host-\(number % 100).example.org/pool/main/p/package-\(number)/package_\(number).deb".utf8)
            let attributes = ObjectAttributes(
                storageClass: .permanent, status: 200, storedAt: 1_800_000_000, expiresAt: 1_900_000_000,
                mediaType: Array("application/octet-stream".utf8))
            let object = PackedObject(
                id: store.nextID(), hash: hash(key), key: key, attributes: attributes,
                head: [UInt8](repeating: 0x68, count: 200), body: body)
            while true {
                let outcome = store.store(object)
                if outcome == .taken { break }
                guard outcome == .busy else {
                    print("object \(number): \(outcome)")
                    exit(1)
                }
                usleep(1000)
            }
        }
        guard store.flush() else {
            print("could not be flushed")
            exit(1)
        }
        let end = Reading.now()
        let statistics = store.statistics
        print("stored: \(statistics.objectCount) objects, \(statistics.usedBytes) bytes, book \(statistics.bookBytes)")
        print("processor: \(Int((end.processor - start.processor) * 1e9) / count) ns an object, all threads")
        print("wall: \(Int((end.wall - start.wall) * 1e9) / count) ns an object")
        store.close()
    }

    // MARK: open

    private static func open(_ path: String) {
        let before = Reading.now()
        let store = openStore(path, size: 64 << 30)
        let opened = Reading.now()
        while !store.isLoaded { usleep(500) }
        let loaded = Reading.now()
        let count = max(1, store.statistics.objectCount)
        print("open: \(Int((opened.wall - before.wall) * 1000)) ms")
        print("loaded: \(Int((loaded.wall - before.wall) * 1000)) ms, \(store.statistics.objectCount) objects")
        print("RssAnon: \((loaded.anonymous - before.anonymous) / count) bytes an object")
        print("RssFile: \((loaded.file - before.file) / count) bytes an object")
        store.close()
    }
}

/// A body that many objects share.
private final class Constant: BodyBytes, Sendable {
    let byteCount: Int
    private let bytes: [UInt8]

    init(length: Int) {
        byteCount = length
        bytes = [UInt8](repeating: 0x62, count: max(1, length))
    }

    func vectors(from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>) -> Int {
        guard offset < byteCount, limit > 0, !vectors.isEmpty else { return 0 }
        // The array lives as long as this object, and is never written to.
        unsafe bytes.withUnsafeBytes {
            unsafe vectors[0] = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: $0.baseAddress! + offset),
                iov_len: min(limit, byteCount - offset))
        }
        return 1
    }
}

/// What the process has used so far: seconds, and resident bytes.
private struct Reading {
    var wall: Double
    var processor: Double
    var anonymous: Int
    var file: Int

    static func now() -> Reading {
        var wall = timespec()
        var processor = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &wall)
        unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &processor)
        func seconds(_ time: timespec) -> Double { Double(time.tv_sec) + Double(time.tv_nsec) / 1e9 }
        return Reading(
            wall: seconds(wall), processor: seconds(processor), anonymous: resident("RssAnon:"),
            file: resident("RssFile:"))
    }

    private static func resident(_ name: String) -> Int {
        guard let file = unsafe fopen("/proc/self/status", "r") else { return 0 }
        defer { unsafe fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while unsafe fgets(&line, 256, file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if text.hasPrefix(name) {
                return (text.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap { Int($0) } ?? 0)
                    << 10
            }
        }
        return 0
    }
}
