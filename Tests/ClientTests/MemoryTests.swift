import ProgramUnderTest
import EventLoop
import Foundation
import Glibc
import Testing

/// Sizes and bounds as the promise has them: what passes through does not pile up, however slow the reader is.
@Suite("Bounded memory", .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct MemoryTests {
    private static let isLong = ProcessInfo.processInfo.environment["LARDER_LONG_TESTS"] == "1"
    /// 1 GiB each way; with LARDER_LONG_TESTS=1 the 10 GiB of the promise.
    private static let size = (isLong ? 10 : 1) << 30
    private static let growthMax = 64 << 20

    @Test(.enabled(if: !isSanitized, "sanitizers need memory of their own"), .timeLimit(.minutes(30)))
    func `large uploads and downloads at once, one reader slow and one asleep`() async throws {
        let sink = Sink()
        try await ScriptedOrigin.with { head, connection in
            sink.take(head, connection)
        } _: { origin in
            try await Workplace.with { place in
                let nginx = try await Nginx.start(in: place)
                try place.write("www/small", "small\n".utf8)
                // Sparse: the bytes cost no disk, and pass through the proxy all the same.
                for name in ["www/large", "upload"] { truncate(place.path(name), Self.size) }
                let larder = try await Larder.start(in: place)
                for _ in 1...4 { _ = try await place.curl("\(nginx.url)/small", through: larder) }
                let before = try larder.memory("VmHWM")

                let asleep = connectLoopback(larder.port)
                defer { close(asleep) }
                ScriptedConnection(fd: asleep).send(
                    "GET \(nginx.url)/large?asleep HTTP/1.1\r\nHost: 127.0.0.1:\(nginx.port)\r\n\r\n")
                let limit: Duration = .seconds(Self.isLong ? 560 : 60)
                async let up = place.run(
                    "curl",
                    [
                        "-q", "-sS", "-x", larder.url, "-T", place.path("upload"), "-H", "Expect:", "\(origin.url)/up",
                        "-o", "/dev/null", "-w", "%{http_code}",
                    ], within: limit)
                async let down = place.run(
                    "curl",
                    [
                        "-q", "-sS", "-x", larder.url, "--limit-rate", "256M", "-o", "/dev/null", "-w",
                        "%{http_code} %{size_download}", "\(nginx.url)/large",
                    ], within: limit)
                let (uploaded, downloaded) = (try await up, try await down)
                #expect(uploaded.out == "200", "\(uploaded)")
                #expect(sink.count == Self.size)
                #expect(downloaded.out == "200 \(Self.size)", "\(downloaded)")

                let growth = try larder.memory("VmHWM") - before
                print(
                    "memory: \(before >> 10) KiB before, grown by \(growth >> 10) KiB for \(Self.size >> 20) MiB each way"
                )
                #expect(growth < Self.growthMax, "grown by \(growth >> 20) MiB")
            }
        }
    }

    @Test(.enabled(if: !isSanitized, "sanitizers need memory of their own"))
    func `a response of unknown length that outgrows the cache, read by two at different speeds`() async throws {
        let size = 256 << 20
        try await ScriptedOrigin.with { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunk = Array("40000\r\n".utf8) + [UInt8](repeating: 0x78, count: 0x40000) + Array("\r\n".utf8)
            for _ in 0..<(size / 0x40000) where !connection.send(chunk) { return }
            connection.send("0\r\n\r\n")
        } _: { origin in
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                _ = try await larder.statistic("requests", "total")
                let before = try larder.memory("VmHWM")
                async let fast = download(place, larder, "\(origin.url)/endless", rate: "512M")
                async let slow = download(place, larder, "\(origin.url)/endless", rate: "64M")
                #expect(try await fast == "0 200 \(size)")
                #expect(try await slow == "0 200 \(size)")
                let growth = try larder.memory("VmHWM") - before
                #expect(growth < Self.growthMax, "grown by \(growth >> 20) MiB")
            }
        }
    }

    @Test(.enabled(if: !isSanitized, "sanitizers need memory of their own"))
    func `a tunnel with a slow reader`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            let size = 256 << 20
            truncate(place.path("www/large"), size)
            let larder = try await Larder.start(in: place)
            let before = try larder.memory("VmHWM")
            #expect(try await download(place, larder, "-p", "\(nginx.url)/large", rate: "128M") == "0 200 \(size)")
            let growth = try larder.memory("VmHWM") - before
            #expect(growth < 16 << 20, "grown by \(growth >> 20) MiB")
        }
    }

    /// What a thread allocated and others freed comes back only when that thread looks for it (`ThreadMemory`).
    @Test(.enabled(if: !isSanitized, "sanitizers need memory of their own"))
    func `what one worker stored and another displaced goes back to the system`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/64k", [UInt8](repeating: 0x78, count: 64 << 10))
            let adminPort = FreePort.take()
            let text = Larder.configuration(in: place, adminPort: adminPort, more: "workers: 2")
                .replacingOccurrences(of: "memory: 64MiB", with: "memory: 128MiB")
            let larder = try await Larder.start(in: place, text: text, adminPort: adminPort)
            _ = try await place.curl("\(nginx.url)/64k", through: larder)
            let before = try larder.memory("RssAnon")
            // Each has one connection, and the kernel chooses the worker.
            for round in 0..<8 {
                let output = try await place.run(
                    "curl", ["-q", "-sS", "-x", larder.url, "-o", "/dev/null", "\(nginx.url)/64k?\(round)-[1-2400]"])
                #expect(output.status == 0, "\(output)")
            }
            #expect(try await larder.statistic("memory", "evictions") > 10_000)
            // Without it, what the other worker had stored stays: 260 MiB in all.
            try await eventually("216 MiB at most for 128 MiB of responses", within: .seconds(60)) {
                try larder.memory("RssAnon") - before < 216 << 20
            }
        }
    }

    /// - Returns: exit status, HTTP status and bytes received.
    private func download(
        _ place: Workplace, _ larder: Larder, _ words: String..., rate: String
    ) async throws -> String {
        let output = try await place.run(
            "curl",
            [
                "-q", "-sS", "-x", larder.url, "--limit-rate", rate, "-o", "/dev/null", "-w",
                " %{http_code} %{size_download}",
            ] + words)
        return "\(output.status)\(output.out)"
    }

    private func truncate(_ path: String, _ size: Int) {
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        #expect(unsafe Glibc.truncate(path, off_t(size)) == 0)
    }

    /// Counts what is uploaded, and reads it with pauses: 1 ms after each 8 MiB.
    private final class Sink: Sendable {
        private let total = Locked(0)
        var count: Int { total.withLock { $0 } }

        func take(_ head: String, _ connection: ScriptedConnection) {
            var count = 0
            var buffer = [UInt8](repeating: 0, count: 1 << 18)
            var rest = MemoryTests.size
            while rest > 0 {
                let received = unsafe buffer.withUnsafeMutableBytes {
                    unsafe recv(connection.fd, $0.baseAddress!, min($0.count, rest), 0)
                }
                guard received > 0 else { break }
                if (count + received) >> 23 != count >> 23 { usleep(1000) }
                count += received
                rest -= received
            }
            total.withLock { [count] in $0 = count }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        }
    }
}
