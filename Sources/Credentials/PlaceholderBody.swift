package import Message

/// The placeholder in the body of a request, where a credential lists members of JSON texts or of forms.
package struct PlaceholderBody {
    /// What a body of that type can hold. Nil: no member that is listed.
    ///
    /// - Parameter types: the values of `Content-Type`. With several nobody knows which of them the server takes.
    package static func syntax(types: [ArraySlice<UInt8>], _ places: PlaceholderPlaces) -> MemberSyntax? {
        guard types.count == 1 else { return nil }
        return MemberSyntax(type: types[0]).flatMap { names(in: $0, places).isEmpty ? nil : $0 }
    }

    package let placeholder: Placeholder
    private let range: Range<Int>
    private let syntax: MemberSyntax
    private let body: [UInt8]

    /// Nil if the body has no placeholder. Throws if one must not stand there.
    package init?(
        _ body: [UInt8], _ syntax: MemberSyntax, _ places: PlaceholderPlaces, credential: String,
        _ index: PlaceholderIndex, now: Moment
    ) throws(PlaceholderFault) {
        var scanner = PlaceholderScanner()
        var offset = 0
        guard let position = scanner.next(in: body.span, from: &offset, index) else { return nil }
        let placeholder = index.placeholders[position]
        guard placeholder.credential == credential else { throw .foreignRequest(placeholder) }
        guard placeholder.holds(at: now) else { throw .ended(placeholder) }
        guard scanner.next(in: body.span, from: &offset, index) == nil else { throw .several(placeholder) }
        let members = BodyMember.all(of: body, syntax, PlaceholderBody.names(in: syntax, places))
            .filter { $0.value == placeholder.text }
        guard members.count == 1 else { throw .misplaced(placeholder, place: "the body") }
        self.placeholder = placeholder
        range = members[0].range
        self.syntax = syntax
        self.body = body
    }

    /// The body with the secret in place of the placeholder.
    package func replacing(by secret: Secret) -> [UInt8] {
        body[..<range.lowerBound] + syntax.value(secret.bytes) + body[range.upperBound...]
    }

    private static func names(in syntax: MemberSyntax, _ places: PlaceholderPlaces) -> [[String]] {
        switch syntax {
        case .json: places.json
        case .form: places.form.map { [$0] }
        }
    }
}
