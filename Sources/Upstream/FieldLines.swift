import Message
import Requesting

/// The field lines of a request or a response, in their order (RFC 9110 §5.2). Names are compared without regard to case.
public struct FieldLines: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    public struct Line: Sendable, Hashable {
        public var name: String
        public var value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    public var lines: [Line]

    public init(_ lines: [Line] = []) { self.lines = lines }

    /// Keeps the order, and lines that repeat a name.
    public init(dictionaryLiteral elements: (String, String)...) {
        lines = elements.map { Line($0.0, $0.1) }
    }

    /// The value of the first line with this name. Nil if there is none.
    public subscript(_ name: String) -> String? { lines.first { FieldLines.isSame($0.name, name) }?.value }

    /// The values of all lines with this name, in order.
    public func all(_ name: String) -> [String] {
        lines.filter { FieldLines.isSame($0.name, name) }.map(\.value)
    }

    public mutating func append(_ name: String, _ value: String) { lines.append(Line(name, value)) }

    private static func isSame(_ a: String, _ b: String) -> Bool { equalsIgnoringCase(a.utf8, b.utf8) }

    init(_ fields: Fields) {
        lines = fields.lines.map {
            Line(
                String(decoding: fields.name(of: $0), as: UTF8.self),
                String(decoding: fields.value(of: $0), as: UTF8.self))
        }
    }

    var forms: [RequestForm.Field] { lines.map { RequestForm.Field($0.name, $0.value) } }
}
