import Message

/// What a node publishes of itself every few seconds, so that every node can show all of them.
///
/// It is one line of words that are separated by a space: `LNOD 1`, then `name=value` in any order, and `code=` with the code over all bytes before its space, in
/// hexadecimal:
///
/// ```
/// LNOD 1 node=cache-1 run=1f2e3d4c release=0.1.0 started=1700000000 said=1700000005000 number=2 requests=17 … code=…
/// ```
///
/// A reader passes over names that it does not know, and does without figures that are not there. So nodes of different releases understand each other as
/// long as the version is the same.
package struct NodeReport: Equatable, Sendable {
    package let node: String
    /// Tells runs of a node apart.
    package let run: String
    package let release: String
    /// In seconds since 1970, by the clock of the node.
    package let startedAt: Int64
    /// In milliseconds since 1970, by the clock of the node.
    package let saidAt: Int64
    /// Counts the reports of the run.
    package let number: UInt64
    package var figures: [NodeFigure: UInt64]

    package static let version = 1
    private static let magic = "LNOD"
    private static let codeMark = Array(" code=".utf8)
    /// A longer value is refused before its code is computed.
    package static let bytesMax = 4 << 10
    /// Of the name of a node, the name of a run and that of a release.
    package static let wordBytesMax = 64

    /// The times that a report can have, in seconds or milliseconds: differences of them fit in 64 bits.
    private static let times: ClosedRange<Int64> = 0...(1 << 53 - 1)

    /// Returns nil if the node, the run or the release is empty, is too long or has something else than visible ASCII, or a time is before 1970 or too late for a clock.
    package init?(
        node: String, run: String, release: String, startedAt: Int64, saidAt: Int64, number: UInt64,
        figures: [NodeFigure: UInt64]
    ) {
        guard [node, run, release].allSatisfy(NodeReport.isWord), NodeReport.times.contains(startedAt),
            NodeReport.times.contains(saidAt)
        else { return nil }
        self.node = node
        self.run = run
        self.release = release
        self.startedAt = startedAt
        self.saidAt = saidAt
        self.number = number
        self.figures = figures
    }

    private static func isWord(_ text: String) -> Bool {
        (1...wordBytesMax).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    package subscript(_ figure: NodeFigure) -> UInt64? { figures[figure] }

    // MARK: the line

    package func encode(hash: some FleetHash) -> [UInt8] {
        let words =
            [
                NodeReport.magic, "\(NodeReport.version)", "node=\(node)", "run=\(run)", "release=\(release)",
                "started=\(startedAt)", "said=\(saidAt)", "number=\(number)",
            ]
            + NodeFigure.allCases.compactMap { figure in figures[figure].map { "\(figure.rawValue)=\($0)" } }
        let content = Array(words.joined(separator: " ").utf8)
        return content + NodeReport.codeMark + hexadecimal(hash.code(for: .report, content))
    }

    /// - Parameter name: the node whose report was asked for: one node's report under the name of another one is refused.
    package static func decode(
        _ bytes: [UInt8], of name: String, hash: some FleetHash
    ) throws(NodeReportError) -> NodeReport {
        guard bytes.count <= bytesMax else { throw .tooLong }
        let sealBytes = codeMark.count + 2 * codeByteCount
        guard bytes.count > sealBytes, bytes.starts(with: Array("\(magic) ".utf8)) else { throw .notAReport }
        let content = bytes.dropLast(sealBytes)
        let seal = bytes.suffix(sealBytes)
        guard seal.starts(with: codeMark) else { throw .notAReport }
        guard areEqualCodes(hexadecimal(hash.code(for: .report, content)), seal.dropFirst(codeMark.count)) else {
            throw .wrongCode
        }
        // From here on a node of the fleet has written the report.
        let report = try read(content)
        guard report.node == name else { throw .wrongNode }
        return report
    }

    private static func read(_ content: ArraySlice<UInt8>) throws(NodeReportError) -> NodeReport {
        let words = content.split(separator: 0x20, omittingEmptySubsequences: false)
        guard words.count >= 2 else { throw .malformed }
        guard Array(words[1]) == Array("\(version)".utf8) else { throw .unknownVersion }
        var values: [String: ArraySlice<UInt8>] = [:]
        for word in words.dropFirst(2) {
            guard let equals = word.firstIndex(of: 0x3D), equals > word.startIndex,
                let name = String(validating: word[..<equals], as: UTF8.self),
                values.updateValue(word[(equals + 1)...], forKey: name) == nil
            else { throw .malformed }
        }
        func text(_ name: String) -> String? { values[name].flatMap { String(validating: $0, as: UTF8.self) } }
        func time(_ name: String) -> Int64? { values[name].flatMap(parseDecimal).flatMap { Int64(exactly: $0) } }
        var figures: [NodeFigure: UInt64] = [:]
        for figure in NodeFigure.allCases {
            guard let value = values[figure.rawValue] else { continue }
            guard let number = parseDecimal(value) else { throw .malformed }
            figures[figure] = number
        }
        guard let node = text("node"), let run = text("run"), let release = text("release"),
            let startedAt = time("started"), let saidAt = time("said"),
            let number = values["number"].flatMap(parseDecimal),
            let report = NodeReport(
                node: node, run: run, release: release, startedAt: startedAt, saidAt: saidAt, number: number,
                figures: figures)
        else { throw .malformed }
        return report
    }
}

/// Why a value is not the report of a node.
package enum NodeReportError: String, Error, CaseIterable, Sendable {
    case notAReport = "not-a-report"
    case tooLong = "too-long"
    /// The report was damaged, or somebody who does not have the secret wrote it.
    case wrongCode = "wrong-code"
    /// A node of another release wrote it.
    case unknownVersion = "unknown-version"
    /// The code and the version are right, but a word is not one that Larder writes.
    case malformed
    /// It is the report of another node.
    case wrongNode = "wrong-node"
}
