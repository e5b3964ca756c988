import JSON
package import Message

/// The placeholder in the body of a request, where a credential lists members of JSON texts or of forms.
package struct PlaceholderBody {
    package enum Form: Sendable { case json, form }

    /// How long a body is examined at most, in bytes. A placeholder in a longer one is refused like one in any other place.
    package static let bytesMax = 1 << 20

    /// What a body of that type can hold. Nil: no member that is listed.
    package static func form(type: ArraySlice<UInt8>?, _ places: PlaceholderPlaces) -> Form? {
        guard let type else { return nil }
        let name = trimOWS(type.prefix { $0 != 0x3B })
        if !places.json.isEmpty,
            equalsIgnoringCase(name, "application/json") || name.suffix(5).elementsEqual("+json".utf8)
        {
            return .json
        }
        return !places.form.isEmpty && equalsIgnoringCase(name, "application/x-www-form-urlencoded") ? .form : nil
    }

    package let placeholder: Placeholder
    /// Where it stands, with the quotation marks of JSON.
    private let range: Range<Int>
    private let form: Form
    private let body: [UInt8]

    /// Nil if the body has no placeholder. Throws if one must not stand there.
    package init?(
        _ body: [UInt8], _ form: Form, _ places: PlaceholderPlaces, credential: String, _ index: PlaceholderIndex,
        now: WallTime
    ) throws(PlaceholderFault) {
        var scanner = PlaceholderScanner()
        var offset = 0
        guard let position = scanner.next(in: body.span, from: &offset, index) else { return nil }
        let placeholder = index.placeholders[position]
        guard placeholder.credential == credential else { throw .foreignRequest(placeholder) }
        guard placeholder.holds(at: now) else { throw .ended(placeholder) }
        guard scanner.next(in: body.span, from: &offset, index) == nil else { throw .several(placeholder) }
        let ranges =
            switch form {
            case .json: PlaceholderBody.members(of: body, places.json, holding: placeholder.text)
            case .form: PlaceholderBody.members(of: body, places.form, holding: placeholder.text)
            }
        guard ranges.count == 1 else { throw .misplaced(placeholder, place: "the body") }
        self.placeholder = placeholder
        range = ranges[0]
        self.form = form
        self.body = body
    }

    /// The body with the secret in place of the placeholder.
    package func replacing(by secret: Secret) -> [UInt8] {
        let written: [UInt8]
        switch form {
        case .json:
            written =
                secret.bytes.reduce(into: [0x22]) { text, byte in
                    if byte == 0x22 || byte == 0x5C { text.append(0x5C) }
                    text.append(byte)
                } + [0x22]
        case .form: written = percentEncode(secret.bytes)
        }
        return body[..<range.lowerBound] + written + body[range.upperBound...]
    }

    private static func members(of body: [UInt8], _ names: [String], holding text: [UInt8]) -> [Range<Int>] {
        body.split(separator: 0x26).compactMap { member in
            let name = member.prefix { $0 != 0x3D }
            let value = member.dropFirst(name.count + 1)
            guard names.contains(String(decoding: percentDecode(name, plusIsSpace: true), as: UTF8.self)),
                percentDecode(value, plusIsSpace: true) == text
            else { return nil }
            return value.startIndex..<value.endIndex
        }
    }

    private static func members(of body: [UInt8], _ paths: [[String]], holding text: [UInt8]) -> [Range<Int>] {
        var scanner = JSONScanner(body)
        var found: [Range<Int>] = []
        do throws(JSONError) {
            _ = try scanner.kind()
            try visit(&scanner, paths.map { $0[...] }, text, &found)
            try scanner.end()
        } catch {
            // What is no JSON text has no members.
            return []
        }
        return found
    }

    private static func visit(
        _ scanner: inout JSONScanner, _ paths: [ArraySlice<String>], _ text: [UInt8], _ found: inout [Range<Int>]
    ) throws(JSONError) {
        guard !paths.isEmpty else {
            _ = try scanner.skipValue()
            return
        }
        switch try scanner.kind() {
        case .object where paths.contains { !$0.isEmpty }:
            try scanner.object { (scanner, name, _) throws(JSONError) in
                let below = paths.filter { $0.first == name }.map { $0.dropFirst() }
                try visit(&scanner, below, text, &found)
            }
        case .string where paths.contains { $0.isEmpty }:
            let start = scanner.position
            if try Array(scanner.string().utf8) == text { found.append(start..<scanner.position) }
        case .object, .array, .string, .number, .bool, .null: _ = try scanner.skipValue()
        }
    }
}
