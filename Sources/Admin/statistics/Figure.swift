/// One number that Larder publishes. It is declared once, as a row in this directory; `/stats`, `/metrics`, the dashboard,
/// `larder stats` and docs/statistics.md are made from the rows.
///
/// `Subject` is what the number is read from: the process, the memory or the disk tier of a zone, or a worker.
package struct Figure<Subject>: Sendable {
    /// The member of its section in `/stats`. Scripts rely on names: add some, but do not change any.
    package let name: String
    /// The sample in `/metrics`; nil if `/metrics` does not have the figure.
    package let metric: Metric?
    package let unit: FigureUnit
    /// What people read beside the number.
    package let label: String
    package let prominence: FigureProminence
    /// One sentence for the manual and for `HELP` in `/metrics`.
    package let help: String
    let value: @Sendable (Subject) -> FigureValue

    /// - Parameter label: nil: the name, with spaces in place of `_` and `-`.
    init(
        _ name: String, _ metric: Metric? = nil, unit: FigureUnit = .count, label: String? = nil,
        shown prominence: FigureProminence = .overview, help: String,
        value: @escaping @Sendable (Subject) -> FigureValue
    ) {
        self.name = name
        self.metric = metric
        self.unit = unit
        self.label = label ?? String(name.map { $0 == "_" || $0 == "-" ? " " : $0 })
        self.prominence = prominence
        self.help = help
        self.value = value
    }

    init(
        _ name: String, _ metric: Metric? = nil, unit: FigureUnit = .count, label: String? = nil,
        shown prominence: FigureProminence = .overview, help: String, count: @escaping @Sendable (Subject) -> UInt64
    ) {
        self.init(name, metric, unit: unit, label: label, shown: prominence, help: help, value: { .count(count($0)) })
    }

    /// The same figure, read from something that has a `Subject`.
    ///
    /// - Parameter prefix: stands before the name of the metric.
    func read<Whole>(from part: @escaping @Sendable (Whole) -> Subject, prefix: String) -> Figure<Whole> {
        Figure<Whole>(
            name, metric?.prefixed(prefix), unit: unit, label: label, shown: prominence, help: help,
            value: { value(part($0)) })
    }
}

/// What a figure counts or measures, which says how it is shown to people.
package enum FigureUnit: String, Sendable {
    case count, bytes, bytesPerSecond, seconds, ratio, flag, text, time
}

/// Where people see a figure. Programs see all of them.
package enum FigureProminence: String, Sendable {
    /// On the dashboard and in `larder stats`.
    case overview
    /// In `larder stats`.
    case detail
    /// On the dashboard and in `larder stats`, but not while it is zero.
    case trouble
}

package enum FigureValue: Sendable, Equatable {
    case count(UInt64)
    /// 0 to 1; nil if there is nothing to divide by.
    case ratio(Double?)
    case flag(Bool)
    /// `on` or `off` in `/stats`, 1 or 0 in `/metrics`.
    case isOn(Bool)
    /// Nil: `/stats` does not have the member.
    case text(String?)
    /// Seconds since 1970-01-01T00:00:00Z.
    case time(Int64)

    var isZero: Bool { self == .count(0) }
}

/// Where a figure stands in `/metrics`. `larder_` before the name, and `_total` behind that of a counter, are not written here.
package struct Metric: Sendable, Equatable {
    package enum Kind: String, Sendable { case counter, gauge }

    private var name: String
    package let kind: Kind
    /// The figure is one sample of this family; nil: it is a family by itself.
    let family: MetricFamily?
    /// The value of the family's label that stands for this figure.
    let labelValue: String?
    /// The text of the figure is the value of this label, and the sample is always 1.
    let textLabel: String?

    static func counter(_ name: String) -> Metric { Metric(name, .counter) }
    static func gauge(_ name: String) -> Metric { Metric(name, .gauge) }
    static func text(_ name: String, label: String) -> Metric { Metric(name, .gauge, textLabel: label) }
    static func sample(of family: MetricFamily, _ labelValue: String) -> Metric {
        Metric(family.name, family.kind, family: family, labelValue: labelValue)
    }

    private init(
        _ name: String, _ kind: Kind, family: MetricFamily? = nil, labelValue: String? = nil, textLabel: String? = nil
    ) {
        self.name = name
        self.kind = kind
        self.family = family
        self.labelValue = labelValue
        self.textLabel = textLabel
    }

    func prefixed(_ prefix: String) -> Metric {
        var result = self
        result.name = prefix + name
        return result
    }

    /// The name of the family in `/metrics`.
    package var fullName: String { "larder_\(name)\(kind == .counter ? "_total" : "")" }
}

/// Several figures that are one family of samples in `/metrics`, told apart by the value of a label.
enum MetricFamily: CaseIterable, Sendable {
    case requests, errors, refusals, denials, closes, originConnections, tunnelBytes, storeEvents

    private struct Row {
        let name: String
        let kind: Metric.Kind
        let label: String
        let help: String

        init(_ name: String, _ kind: Metric.Kind, by label: String, _ help: String) {
            self.name = name
            self.kind = kind
            self.label = label
            self.help = help
        }
    }

    private var row: Row {
        switch self {
        case .requests: Row("requests", .counter, by: "outcome", "Requests by outcome.")
        case .errors:
            Row("errors", .counter, by: "type", "Requests that failed at the origin, by error type (RFC 9209).")
        case .refusals: Row("refusals", .counter, by: "reason", "Refused requests and malformed messages by reason.")
        case .denials: Row("denials", .counter, by: "reason", "Requests that the access rules denied by reason.")
        case .closes: Row("client_connections_closed", .counter, by: "reason", "Closed client connections by reason.")
        case .originConnections: Row("origin_connections", .gauge, by: "state", "Open connections to origins by state.")
        case .tunnelBytes: Row("tunnel_bytes", .counter, by: "direction", "Bytes through tunnels that have ended.")
        case .storeEvents:
            Row("store_events", .counter, by: "event", "What happened to stored responses and transfers.")
        }
    }

    var name: String { row.name }
    var kind: Metric.Kind { row.kind }
    var label: String { row.label }
    var help: String { row.help }
}
