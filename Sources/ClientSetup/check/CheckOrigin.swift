/// The origin with which `larder doctor` tests whether tools reach the proxy, trust it and are served from the cache. It is inside Larder, and
/// its name exists nowhere else: `.internal` is reserved for private use, so a request for it that does not go through the proxy fails.
///
/// A run of doctor has a name of its own, which stands in every path that it gives to a tool. The origin answers all of them with a response
/// that may be stored, and remembers that it was asked. What the cache answers does not get here, so a second request that leaves no
/// trace was a hit.
package enum CheckOrigin {
    package static let host = "check.larder.internal"

    /// How a request came here.
    package enum Way: String, Sendable, CaseIterable {
        case http
        /// Opened by Larder, which is the other end of the client's TLS.
        case https
        /// Through a tunnel that Larder did not open.
        case tunnel
    }

    /// The name of a run: 32 hexadecimal digits in lower case.
    package struct RunName: Hashable, Sendable {
        package let text: String

        package init(random: (high: UInt64, low: UInt64)) {
            text = RunName.digits(random.high) + RunName.digits(random.low)
        }

        private static func digits(_ number: UInt64) -> String {
            let text = String(number, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }

        init?(_ text: Substring) {
            guard text.utf8.count == 32, text.utf8.allSatisfy(isLowerHex) else { return nil }
            self.text = String(text)
        }
    }

    /// What a response says, besides its length.
    package struct Answer: Equatable, Sendable {
        package let status: UInt16
        package let mayBeStored: Bool
        package let body: String
    }

    /// Answers a request, and remembers it.
    ///
    /// - Parameter path: of the target, with the query.
    package static func answer(
        _ way: Way, method: String, path: String, remembering records: inout CheckRecords
    ) -> Answer {
        let segments = path.split(separator: "/")
        guard method == "GET" || method == "HEAD" else {
            return Answer(status: 405, mayBeStored: false, body: "This origin is read.\n")
        }
        guard let run = segments.lazy.compactMap({ RunName($0) }).first else {
            return Answer(status: 200, mayBeStored: false, body: "This is the origin of larder doctor.\n")
        }
        if segments.count == 3, segments[0] == "doctor", segments[2] == "seen" {
            return Answer(status: 200, mayBeStored: false, body: records.text(of: run))
        }
        records.note(CheckRecords.Sighting(way: way, method: method, path: path), in: run)
        return Answer(status: 200, mayBeStored: true, body: "larder doctor \(run.text)\n")
    }
}

private func isLowerHex(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte) }

/// Which requests of each run reached the origin. Bounded: the oldest run gives way to a new one.
package struct CheckRecords: Sendable {
    package struct Sighting: Hashable, Sendable {
        package let way: CheckOrigin.Way
        package let method: String
        package let path: String

        package init(way: CheckOrigin.Way, method: String, path: String) {
            self.way = way
            self.method = method
            self.path = path
        }
    }

    static let runsMax = 16
    static let sightingsMax = 512
    static let pathBytesMax = 512

    private var runs: [(name: CheckOrigin.RunName, counts: [Sighting: Int])] = []

    package init() {}

    mutating func note(_ sighting: Sighting, in run: CheckOrigin.RunName) {
        guard sighting.path.utf8.count <= Self.pathBytesMax else { return }
        let index: Int
        if let known = runs.firstIndex(where: { $0.name == run }) {
            index = known
        } else {
            if runs.count == Self.runsMax { runs.removeFirst() }
            runs.append((run, [:]))
            index = runs.count - 1
        }
        guard runs[index].counts[sighting] != nil || runs[index].counts.count < Self.sightingsMax else { return }
        runs[index].counts[sighting, default: 0] += 1
    }

    /// One line "COUNT WAY METHOD PATH" for each kind of request.
    func text(of run: CheckOrigin.RunName) -> String {
        let counts = runs.first { $0.name == run }?.counts ?? [:]
        return counts.map { "\($1) \($0.way.rawValue) \($0.method) \($0.path)\n" }.sorted().joined()
    }

    /// Reads what `text` wrote.
    package static func read(_ text: String) -> [Sighting: Int] {
        var counts: [Sighting: Int] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 3)
            guard parts.count == 4, let count = Int(parts[0]), let way = CheckOrigin.Way(rawValue: String(parts[1]))
            else { continue }
            counts[Sighting(way: way, method: String(parts[2]), path: String(parts[3]))] = count
        }
        return counts
    }
}
