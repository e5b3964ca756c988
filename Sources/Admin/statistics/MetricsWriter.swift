/// Writes the Prometheus text exposition format 0.0.4.
///
/// Every family has HELP and TYPE once, and its samples follow. Label values are escaped.
package struct MetricsWriter {
    package private(set) var bytes: [UInt8] = []
    private var families: Set<String> = []

    package init() {}

    /// - Parameter label: the name of the label that tells the samples apart; nil if there is just one.
    package mutating func family(
        _ name: String, _ kind: Metric.Kind, _ help: String, label: String? = nil,
        _ samples: [(label: String, value: UInt64)]
    ) {
        precondition(families.insert(name).inserted, "\(name) is written twice")
        append("# HELP \(name) \(Self.escaped(help, quote: false))\n# TYPE \(name) \(kind.rawValue)\n")
        for sample in samples {
            let labels = label.map { "{\($0)=\"\(Self.escaped(sample.label, quote: true))\"}" } ?? ""
            append("\(name)\(labels) \(sample.value)\n")
        }
    }

    /// Backslash and line feed everywhere, the quote in label values as well.
    static func escaped(_ text: String, quote: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quote: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }
}
