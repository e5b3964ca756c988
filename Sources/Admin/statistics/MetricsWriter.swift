import Texts

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
        append("# HELP \(name) \(metricsHelp(help))\n# TYPE \(name) \(kind.rawValue)\n")
        for sample in samples {
            let labels = label.map { "{\($0)=\(metricsLabel(sample.label))}" } ?? ""
            append("\(name)\(labels) \(sample.value)\n")
        }
    }

    private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }
}
