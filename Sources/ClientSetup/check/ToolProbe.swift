/// How `larder doctor` lets a tool make one harmless request.
///
/// In words, values and files these stand for something: `{url}` for a URL below which every path answers, `{place}` for the same without
/// its scheme, `{dir}` for an empty directory, `{program}` for the program that was found.
package struct ToolProbe: Equatable, Sendable {
    package let words: [String]
    /// Variables that are set in addition. None of them concerns proxy or certificates.
    package let environment: [String: String]
    /// Files that are written into `{dir}` before.
    package let files: [String: String]
    package let ways: [Way]
    /// Whether a second request may be answered from the cache. Some tools forbid it.
    package let mayBeCached: Bool
    /// The probe cannot tell anything if the output contains one of these.
    package let impossibleIf: [String]
    /// The tool has no support for proxies, and nothing mends that, if the output contains this.
    package let incapableIf: String?

    package enum Way: String, Sendable, CaseIterable { case http, https }

    init(
        _ words: String..., environment: [String: String] = [:], files: [String: String] = [:],
        ways: [Way] = Way.allCases,
        mayBeCached: Bool = true, impossibleIf: [String] = [], incapableIf: String? = nil
    ) {
        self.words = words
        self.environment = environment
        self.files = files
        self.ways = ways
        self.mayBeCached = mayBeCached
        self.impossibleIf = impossibleIf
        self.incapableIf = incapableIf
    }

    /// The same with the placeholders filled in.
    package func filled(program: String, way: Way, path: String, directory: String) -> ToolProbe {
        let place = "\(CheckOrigin.host)\(path)"
        let values = [
            "{url}": "\(way.rawValue)://\(place)", "{place}": place, "{dir}": directory, "{program}": program,
        ]
        let fill = { (text: String) in values.reduce(text) { ToolProbe.replace($1.key, by: $1.value, in: $0) } }
        return ToolProbe(
            words: words.map(fill), environment: environment.mapValues(fill), files: files.mapValues(fill), ways: [way],
            mayBeCached: mayBeCached, impossibleIf: impossibleIf, incapableIf: incapableIf)
    }

    private init(
        words: [String], environment: [String: String], files: [String: String], ways: [Way], mayBeCached: Bool,
        impossibleIf: [String], incapableIf: String?
    ) {
        self.words = words
        self.environment = environment
        self.files = files
        self.ways = ways
        self.mayBeCached = mayBeCached
        self.impossibleIf = impossibleIf
        self.incapableIf = incapableIf
    }

    private static func replace(_ mark: String, by value: String, in text: String) -> String {
        guard let range = text.firstRange(of: mark) else { return text }
        return String(text[..<range.lowerBound]) + value
            + replace(mark, by: value, in: String(text[range.upperBound...]))
    }
}

extension ToolProbe {
    /// A command line without placeholders, which tests nothing.
    package init(running words: [String]) {
        self.init(
            words: words, environment: [:], files: [:], ways: [], mayBeCached: false, impossibleIf: [],
            incapableIf: nil)
    }
}
