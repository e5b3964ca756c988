import Admin
import Texts

/// The number of URLs by result.
struct WarmSum: Sendable, Equatable {
    var hits = 0
    var stored = 0
    /// How many of `stored` are not pinned as their rule wants it.
    var unpinned = 0
    /// How many are not where their rules want them, because the disk did not take them.
    var broken = 0
    /// By the reason that the proxy gave.
    var notStored: [String: Int] = [:]
    var failed = 0
    var bytes: UInt64 = 0

    var fetched: Int { hits + stored + notStored.values.reduce(0, +) }
    var count: Int { fetched + failed }

    mutating func add(_ result: WarmResult) {
        bytes += result.bytes
        if result.outcome.breaksPromise { broken += 1 }
        switch result.outcome {
        case .hit: hits += 1
        case .stored: stored += 1
        case .storedUnpinned:
            stored += 1
            unpinned += 1
        case .notStored(let reason): notStored[reason, default: 0] += 1
        case .failed: failed += 1
        }
    }

    /// `fetched 40, 1.5 MiB in 2.3 s: 30 stored, 8 hits, 2 not stored (no-store: 2); 1 failed`
    func text(_ elapsed: Duration) -> String {
        let seconds = fixed(elapsed / .seconds(1))
        let unpinned = unpinned > 0 ? " (\(grouped(Int64(self.unpinned))) not pinned, the quota is full)" : ""
        var parts = [
            "\(grouped(Int64(stored))) stored\(unpinned)", hits == 1 ? "1 hit" : "\(grouped(Int64(hits))) hits",
        ]
        if !notStored.isEmpty { parts.append("\(total(notStored)) not stored (\(reasons(notStored)))") }
        var text = "fetched \(grouped(Int64(fetched))), \(binarySize(Double(bytes))) in \(seconds) s: "
        text += parts.joined(separator: ", ")
        return failed > 0 ? "\(text); \(grouped(Int64(failed))) failed" : text
    }

    func json(_ elapsed: Duration) -> String {
        var writer = JSONWriter()
        writer.object { writer in
            writer.key("summary")
            writer.object {
                $0.member("fetched", fetched)
                $0.member("hits", hits)
                $0.member("stored", stored)
                $0.member("unpinned", unpinned)
                $0.counts("not_stored", notStored)
                $0.member("failed", failed)
                $0.member("bytes", bytes)
                $0.member("milliseconds", Int64(elapsed / .milliseconds(1)))
            }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

private func total(_ counts: [String: Int]) -> String { grouped(Int64(counts.values.reduce(0, +))) }

private func reasons(_ counts: [String: Int]) -> String {
    counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.key): \($0.value)" }.joined(separator: ", ")
}

extension JSONWriter {
    fileprivate mutating func counts(_ name: String, _ counts: [String: Int]) {
        key(name)
        object { writer in for (name, count) in counts.sorted(by: { $0.key < $1.key }) { writer.member(name, count) } }
    }
}

extension WarmResult {
    /// `stored      200    12.3 KiB  http://example.org/a`
    var line: String {
        let size = binarySize(Double(bytes))
        let place = finalURL.map { "\(url) -> \($0)" } ?? url
        let indent = String(repeating: " ", count: max(0, 11 - size.count))
        let reason = outcome.reason.map { "  (\($0))" } ?? ""
        return lineText(
            "\(padded(outcome.name, 11))\(padded(status.map { "\($0)" } ?? "-", 4))\(indent)\(size)  \(place)\(reason)")
    }

    var json: String {
        var writer = JSONWriter()
        writer.object {
            $0.member("url", url)
            if let finalURL { $0.member("final_url", finalURL) }
            $0.member("outcome", outcome.token)
            if let reason = outcome.reason { $0.member("reason", reason) }
            if let status { $0.member("status", status) }
            $0.member("bytes", bytes)
            $0.member("attempts", attempts)
            $0.member("milliseconds", milliseconds)
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
