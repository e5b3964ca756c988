import JSON
import Message

/// How the members of a body are written.
package enum MemberSyntax: Sendable, Equatable {
    case json
    /// `application/x-www-form-urlencoded`.
    case form

    /// Nil for a type that has no members.
    package init?(type: ArraySlice<UInt8>?) {
        guard let type else { return nil }
        let name = trimOWS(type.prefix { $0 != 0x3B })
        if equalsIgnoringCase(name, "application/json") || equalsIgnoringCase(name, "text/json")
            || name.suffix(5).elementsEqual("+json".utf8, by: { asciiLowercased($0) == $1 })
        {
            self = .json
        } else if equalsIgnoringCase(name, "application/x-www-form-urlencoded") {
            self = .form
        } else {
            return nil
        }
    }
}

/// A member of a body whose value is a text.
struct BodyMember {
    /// The position of its name among those that were looked for.
    let name: Int
    /// Where the value stands: in JSON with its quotation marks, in a form as it is encoded.
    let range: Range<Int>
    /// Decoded.
    let value: [UInt8]

    /// The members with these names, in their order. None if a JSON text is not well-formed.
    ///
    /// - Parameter names: each is the names that lead to a member of a JSON text. In a form they stand with dots between them.
    static func all(of body: [UInt8], _ syntax: MemberSyntax, _ names: [[String]]) -> [BodyMember] {
        switch syntax {
        case .json: ofJSON(body, names)
        case .form: ofForm(body, names.map { $0.joined(separator: ".") })
        }
    }

    private static func ofForm(_ body: [UInt8], _ names: [String]) -> [BodyMember] {
        body.split(separator: 0x26).compactMap { member in
            let spelling = member.prefix { $0 != 0x3D }
            let value = member.dropFirst(spelling.count + 1)
            let name = String(decoding: percentDecode(spelling, plusIsSpace: true), as: UTF8.self)
            return names.firstIndex(of: name).map {
                BodyMember(
                    name: $0, range: value.startIndex..<value.endIndex, value: percentDecode(value, plusIsSpace: true))
            }
        }
    }

    private static func ofJSON(_ body: [UInt8], _ names: [[String]]) -> [BodyMember] {
        var scanner = JSONScanner(body)
        var found: [BodyMember] = []
        do throws(JSONError) {
            _ = try scanner.kind()
            try visit(&scanner, names.indices.map { ($0, names[$0][...]) }, &found)
            try scanner.end()
        } catch {
            return []
        }
        return found
    }

    /// - Parameter sought: what is left of each name below this value.
    private static func visit(
        _ scanner: inout JSONScanner, _ sought: [(name: Int, rest: ArraySlice<String>)], _ found: inout [BodyMember]
    ) throws(JSONError) {
        guard !sought.isEmpty else {
            _ = try scanner.skipValue()
            return
        }
        switch try scanner.kind() {
        case .object where sought.contains { !$0.rest.isEmpty }:
            try scanner.object { (scanner, name, _) throws(JSONError) in
                let below = sought.filter { $0.rest.first == name }.map { ($0.name, $0.rest.dropFirst()) }
                try visit(&scanner, below, &found)
            }
        case .string:
            let start = scanner.position
            let value = try Array(scanner.string().utf8)
            if let name = sought.first(where: { $0.rest.isEmpty })?.name {
                found.append(BodyMember(name: name, range: start..<scanner.position, value: value))
            }
        case .object, .array, .number, .bool, .null: _ = try scanner.skipValue()
        }
    }
}

extension MemberSyntax {
    /// A text as the value of a member.
    func value(_ text: [UInt8]) -> [UInt8] {
        switch self {
        case .json:
            text.reduce(into: [0x22]) { written, byte in
                if byte == 0x22 || byte == 0x5C { written.append(0x5C) }
                written.append(byte)
            } + [0x22]
        case .form: percentEncoded(text)
        }
    }
}
