import JSON
import Message

/// Which parts of a request may carry a credential of the client's own, in each reading that a server may plausibly take: where placeholders are
/// required (`PlaceholderPlaces.isRequired`), none of them may hold anything else.
///
/// The one decision about that. Servers differ in what they take for a member: `;` separates members or does not (RFC 1866 §8.2.1), names count
/// in any case, `token[]` and `token%00x` are `token`, and some look for JSON or a form whatever `Content-Type` says. A part counts if one of
/// these readings makes it a credential.
package struct CredentialSearch: Sendable {
    private let places: PlaceholderPlaces
    private let query: Set<[UInt8]>
    private let form: Set<[UInt8]>
    private let json: [[[UInt8]]]

    package init(_ places: PlaceholderPlaces) {
        self.places = places
        // A server that reads forms often looks for a member in both.
        form = Set((places.form + (places.form.isEmpty ? [] : places.query)).map(CredentialSearch.canonical))
        query = Set((places.query + places.form).map(CredentialSearch.canonical))
        json = places.json.map { $0.map(CredentialSearch.canonical) }
    }

    // MARK: the head

    /// Whether a field with that name carries a credential to the origin.
    package func isCredential(field name: ArraySlice<UInt8>) -> Bool {
        // It is for Larder, which does not pass it on.
        if equalsIgnoringCase(name, "Proxy-Authorization") { return false }
        return SecretName.kind(name) == .credential
            || places.fields.contains { equalsIgnoringCase(Array($0.utf8)[...], name) }
    }

    /// The first part of a target that may be a credential: "the member token of the query". Nil: there is none.
    ///
    /// - Parameters:
    ///   - target: the path and the query.
    ///   - placeholder: a value that is allowed.
    package func place(inTarget target: ArraySlice<UInt8>, beside placeholder: [UInt8]?) -> String? {
        let path = target.prefix { $0 != 0x3F }
        for segment in path.split(separator: 0x2F) {
            // Behind `;` stand parameters (RFC 3986 §3.3), such as `;jsessionid=`.
            for member in FormMember.all(of: segment.drop { $0 != 0x3B }, separators: [0x3B])
            where isCredential(member, named: query, beside: placeholder) {
                return "the parameter \(member.shownName) of the path"
            }
        }
        let members = FormMember.readings(of: target.dropFirst(path.count + 1), isText: false)
        return members.first { isCredential($0, named: query, beside: placeholder) }
            .map { "the member \($0.shownName) of the query" }
    }

    private func isCredential(_ member: FormMember, named listed: Set<[UInt8]>, beside placeholder: [UInt8]?) -> Bool {
        if isListed(member, listed) { return member.holdsMore(than: placeholder) }
        return SecretName.kind(member.name) == .credential && !member.isFlag && member.holdsMore(than: placeholder)
    }

    private func isListed(_ member: FormMember, _ listed: Set<[UInt8]>) -> Bool {
        !listed.isEmpty
            && SecretName.readings(percentDecode(member.name, plusIsSpace: true)).contains { listed.contains($0) }
    }

    // MARK: the body

    /// What servers may read in a body of these types. Nil: no member is listed.
    ///
    /// - Parameter types: the values of `Content-Type`, one of each line.
    package func readings(types: [ArraySlice<UInt8>]) -> BodyReadings? {
        guard places.concernBodies else { return nil }
        return BodyReadings(types, listsJSON: !json.isEmpty, listsForm: !form.isEmpty)
    }

    /// The first listed member of a body that holds something else than the placeholder. Nil: there is none.
    ///
    /// - Throws: the body cannot be read with certainty.
    package func member(
        in body: [UInt8], _ readings: BodyReadings, beside placeholder: [UInt8]?
    ) throws(BodyReadings.Obstacle) -> String? {
        if let obstacle = readings.obstacle { throw obstacle }
        if readings.form {
            let found = FormMember.readings(of: body[...], isText: true).first {
                isListed($0, form) && $0.holdsMore(than: placeholder)
            }
            if let found { return found.shownName }
        }
        guard
            readings.json == .declared || (readings.json == .ifItBeginsSo && BodyReadings.beginsLikeJSON(body) == true)
        else { return nil }
        var search = JSONSearch(json, placeholder)
        do throws(JSONError) {
            var scanner = JSONScanner(body)
            // Text that is not declared as one JSON text may be several (`application/x-ndjson`).
            repeat { try search.visit(&scanner) } while readings.json == .ifItBeginsSo && scanner.hasMore
            try scanner.end()
        } catch {
            throw .noJSON(isDeclared: readings.json == .declared)
        }
        return search.found.map { places.json[$0].joined(separator: ".") }
    }

    /// The same for all spellings that servers take for one name.
    fileprivate static func canonical(_ name: String) -> [UInt8] {
        SecretName.readings(folded(name)).first ?? []
    }

    /// Some servers compare names without regard to case, as Unicode has it: `ſ` is `s`, and the sign for Kelvin `k`.
    fileprivate static func folded(_ name: String) -> [UInt8] { Array(name.uppercased().lowercased().utf8) }
}

/// A member of a query, a form, or the parameters of a segment of a path.
private struct FormMember {
    /// As it was sent.
    let name: ArraySlice<UInt8>
    /// Decoded.
    let value: [UInt8]

    /// In each reading: separated by `&` alone, and by `;` (RFC 1866 §8.2.1) and the ends of lines (`text/plain` of HTML forms) as well.
    static func readings(of bytes: ArraySlice<UInt8>, isText: Bool) -> [FormMember] {
        let others: [UInt8] = isText ? [0x26, 0x3B, 0x0A, 0x0D] : [0x26, 0x3B]
        let members = all(of: bytes, separators: [0x26])
        return bytes.contains { $0 != 0x26 && others.contains($0) }
            ? members + all(of: bytes, separators: others) : members
    }

    static func all(of bytes: ArraySlice<UInt8>, separators: [UInt8]) -> [FormMember] {
        bytes.split { separators.contains($0) }.map { member in
            let name = member.prefix { $0 != 0x3D }
            return FormMember(name: name, value: percentDecode(member.dropFirst(name.count + 1), plusIsSpace: true))
        }
    }

    /// Nothing but letters, digits and a few signs is shown.
    var shownName: String {
        let decoded = percentDecode(name.prefix(64)).map { isUnreserved($0) || $0 == 0x5B || $0 == 0x5D ? $0 : 0x3F }
        return String(decoding: decoded, as: UTF8.self).lowercased()
    }

    func holdsMore(than placeholder: [UInt8]?) -> Bool { !value.isEmpty && value != placeholder }

    /// `reset_password=1`: says whether, and not what.
    var isFlag: Bool {
        ["0", "1", "true", "false", "yes", "no"].contains { equalsIgnoringCase(value[...], $0) }
    }
}

/// Looks for members of a JSON text.
private struct JSONSearch {
    /// The names that lead to each member.
    private let names: [[[UInt8]]]
    private let placeholder: [UInt8]?
    /// The position of the first member that holds a credential.
    private(set) var found: Int?

    init(_ names: [[[UInt8]]], _ placeholder: [UInt8]?) {
        self.names = names
        self.placeholder = placeholder
    }

    mutating func visit(_ scanner: inout JSONScanner) throws(JSONError) {
        try visit(&scanner, names.indices.map { ($0, names[$0][...]) }, depth: 0)
    }

    /// - Parameter sought: what is left of each name below this value. Empty: the value is that of the member.
    private mutating func visit(
        _ scanner: inout JSONScanner, _ sought: [(name: Int, rest: ArraySlice<[UInt8]>)], depth: Int
    ) throws(JSONError) {
        guard depth <= JSONScanner.skippedDepthMax else { throw .tooDeep }
        let member = sought.first { $0.rest.isEmpty }?.name
        switch try scanner.kind() {
        case .object:
            try scanner.object { (scanner, name, _) throws(JSONError) in
                let readings = SecretName.readings(CredentialSearch.folded(name))
                let below = sought.compactMap { (name, rest) in
                    rest.first.flatMap { readings.contains($0) ? (name, rest.dropFirst()) : nil }
                }
                // An object in place of a text: what is in it may be the credential.
                if below.isEmpty, let member { note(member) }
                try visit(&scanner, below, depth: depth + 1)
            }
        case .array:
            try scanner.array { (scanner) throws(JSONError) in try visit(&scanner, sought, depth: depth + 1) }
        case .string:
            let value = try Array(scanner.string().utf8)
            if let member, !value.isEmpty, value != placeholder { note(member) }
        case .number:
            _ = try scanner.number()
            if let member { note(member) }
        // One bit is no credential.
        case .bool, .null: _ = try scanner.word()
        }
    }

    private mutating func note(_ member: Int) { if found == nil { found = member } }
}

/// What servers may read in a body, by its `Content-Type`.
package struct BodyReadings: Sendable, Equatable {
    package enum JSONReading: Sendable, Equatable {
        case none
        /// The type says something else, or nothing. A server that does not ask for it reads JSON all the same if the body begins like it.
        case ifItBeginsSo
        /// The body has to be one well-formed text.
        case declared
    }

    /// Why a body cannot be examined.
    package enum Obstacle: Error, Sendable, Equatable {
        /// Its type has members in a form of which Larder reads nothing: parts, XML, YAML, CBOR.
        case type
        /// Its characters are not those of ASCII.
        case charset
        /// It has a content coding.
        case coding
        /// It is longer than what Larder keeps.
        case length
        case noJSON(isDeclared: Bool)

        /// For people: what is wrong, and what the client has to do.
        var text: String {
            switch self {
            case .type: "its type has members that Larder does not read; send application/json or a form"
            case .charset: "its charset is none that Larder reads; send UTF-8"
            case .coding: "it has a Content-Encoding; send it without"
            case .length: "it is longer than Larder keeps bodies; send a shorter one"
            case .noJSON(isDeclared: true): "it is no well-formed JSON; send one that is"
            case .noJSON(isDeclared: false):
                "it begins like JSON and is not well-formed; send application/json that is"
            }
        }
    }

    package let json: JSONReading
    package let form: Bool
    /// No body of that type can be examined.
    package let obstacle: Obstacle?

    /// - Parameters:
    ///   - types: the values of `Content-Type`.
    ///   - listsJSON: members of JSON texts are looked for.
    init(_ types: [ArraySlice<UInt8>], listsJSON: Bool, listsForm: Bool) {
        let text = String(decoding: Array(types.joined(separator: [0x2C])), as: UTF8.self).lowercased()
        let name = types.count == 1 ? BodyReadings.typeName(types[0]) : nil
        let declared = name == nil ? nil : MemberSyntax(type: types[0])
        // Without a type that all read in the same way a server may guess, or take the first or the last of several.
        form =
            listsForm
            && (name == nil || declared == .form || name?.hasPrefix("text/") == true && declared == nil
                || text.contains("urlencoded"))
        json = !listsJSON ? .none : declared == .json ? .declared : .ifItBeginsSo
        obstacle =
            if BodyReadings.unreadTypes.contains(where: { text.contains($0) }) {
                .type
            } else if form || json == .declared, !BodyReadings.hasKnownCharset(text) { .charset } else { nil }
    }

    private static let unreadTypes = ["multipart", "xml", "yaml", "cbor", "msgpack", "messagepack", "bson"]

    /// `type/subtype`, in lower case. Nil: it is written in another way.
    private static func typeName(_ value: ArraySlice<UInt8>) -> String? {
        let name = trimOWS(value.prefix { $0 != 0x3B })
        let parts = name.split(separator: 0x2F, omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isTchar) }), !value.contains(0x2C)
        else { return nil }
        return String(decoding: name, as: UTF8.self).lowercased()
    }

    /// Some servers decode the whole body by `charset`, so that its bytes say something else.
    private static func hasKnownCharset(_ text: String) -> Bool {
        text.split(separator: "charset", omittingEmptySubsequences: false).dropFirst().allSatisfy { rest in
            let value = rest.drop { "*= \t\"'".contains($0) }.prefix { !"; ,\t\"'".contains($0) }
            return ["", "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252"].contains(value)
        }
    }

    // MARK: while it comes

    /// Whether the body holds no listed member, whatever follows these bytes.
    package func isSettled(by bytes: [UInt8]) -> Bool {
        obstacle == nil && !form
            && (json == .none || (json == .ifItBeginsSo && BodyReadings.beginsLikeJSON(bytes) == false))
    }

    /// Whether nothing but the whole body can be examined.
    package var needsWhole: Bool { obstacle != nil || form || json == .declared }

    /// Whether a reader of JSON that is not strict may take the body for an object or an array: behind a byte order mark, white space and
    /// comments, in UTF-8 or with two or four bytes for each character. Nil: no more than such bytes has come.
    static func beginsLikeJSON(_ bytes: [UInt8]) -> Bool? {
        let isSkipped: (UInt8) -> Bool = { $0 <= 0x20 || $0 == 0xEF || $0 == 0xBB || $0 == 0xBF || $0 >= 0xFE }
        let rest = bytes.drop(while: isSkipped)
        guard let first = rest.first else { return nil }
        if first == 0x7B || first == 0x5B { return true }
        guard first == 0x2F else { return false }
        guard let second = rest.dropFirst().first(where: { $0 != 0 }) else { return nil }
        return second == 0x2F || second == 0x2A
    }
}

/// What the body of a request must not hold, for one credential.
package struct BodyRequirement: Sendable {
    private let credential: String
    private let search: CredentialSearch
    private let readings: BodyReadings

    /// Nil: the credential requires nothing of bodies.
    package init?(_ places: PlaceholderPlaces, credential: String, types: [ArraySlice<UInt8>]) {
        guard places.isRequired else { return nil }
        let search = CredentialSearch(places)
        guard let readings = search.readings(types: types) else { return nil }
        self.credential = credential
        self.search = search
        self.readings = readings
    }

    /// Whether the body holds no listed member, whatever follows these bytes: it need not be kept.
    package func isSettled(by bytes: [UInt8]) -> Bool { readings.isSettled(by: bytes) }

    /// Checks what is known before the body comes.
    ///
    /// - Parameter isTooLong: its length has been announced, and it is not kept as a whole.
    package func check(isCoded: Bool, isTooLong: Bool) throws(PlaceholderFault) {
        if let obstacle = readings.obstacle { throw .unreadableBody(obstacle, credential: credential) }
        if isCoded { throw .unreadableBody(.coding, credential: credential) }
        if isTooLong, readings.needsWhole { throw .unreadableBody(.length, credential: credential) }
    }

    /// Checks what has come of a body that is too long to be kept.
    package func check(beginning bytes: [UInt8]) throws(PlaceholderFault) {
        if !isSettled(by: bytes) { throw .unreadableBody(.length, credential: credential) }
    }

    /// Checks a whole body.
    ///
    /// - Parameter placeholder: the one in the body.
    package func check(_ body: [UInt8], beside placeholder: Placeholder?) throws(PlaceholderFault) {
        let member: String?
        do throws(BodyReadings.Obstacle) {
            member = try search.member(in: body, readings, beside: placeholder?.text)
        } catch {
            throw .unreadableBody(error, credential: credential)
        }
        guard let member else { return }
        throw .ownCredential(place: "the member \(member) of the body", credential: credential)
    }
}
