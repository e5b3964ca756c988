package import Message

/// The placeholders in the head of a request, and the decision about it.
package struct PlaceholderExamination {
    /// One placeholder, and where it was found.
    private struct Finding {
        enum Place: Equatable {
            case target
            case line(FieldLine)
        }
        let placeholder: Placeholder
        let place: Place
    }
    private let fields: Fields
    /// The path and the query.
    private let target: ArraySlice<UInt8>
    private var findings: [Finding] = []

    /// - Parameter target: the path and the query.
    package init(_ fields: Fields, target: ArraySlice<UInt8>, _ index: PlaceholderIndex) {
        self.fields = fields
        self.target = target
        guard !index.isEmpty else { return }
        for placeholder in PlaceholderExamination.placeholders(in: target, index) {
            findings.append(Finding(placeholder: placeholder, place: .target))
        }
        // `Proxy-Authorization` is for Larder itself.
        for line in fields.lines where line.name != .proxyAuthorization {
            for placeholder in PlaceholderExamination.placeholders(in: fields.value(of: line), index) {
                findings.append(Finding(placeholder: placeholder, place: .line(line)))
            }
            if line.name == .other,
                let one = PlaceholderExamination.placeholders(in: fields.name(of: line), index).first
            {
                findings.append(Finding(placeholder: one, place: .line(line)))
                findings.append(Finding(placeholder: one, place: .line(line)))
            }
        }
    }

    /// The placeholder that was found first.
    package var placeholder: Placeholder? { findings.first?.placeholder }

    /// The place at which the placeholder is replaced.
    ///
    /// - Parameter places: those of the credential, which belongs to the request. Nil: it does not.
    package func use(_ places: PlaceholderPlaces?, now: Moment) throws(PlaceholderFault) -> PlaceholderUse? {
        guard let finding = findings.first else { return nil }
        let placeholder = finding.placeholder
        guard let places else { throw .foreignRequest(placeholder) }
        guard placeholder.holds(at: now) else { throw .ended(placeholder) }
        guard findings.count == 1 else { throw .several(placeholder) }
        let place =
            switch finding.place {
            case .target: placeInTarget(placeholder, places)
            case .line(let line): placeInField(line, placeholder, places)
            }
        guard let place else { throw .misplaced(placeholder, place: name(of: finding.place)) }
        return PlaceholderUse(placeholder: placeholder, place: place)
    }

    /// Checks that the head has no credential of the client's own, beside the placeholder that is replaced or without one.
    ///
    /// - Parameter use: what `use` has returned.
    package func requirePlaceholder(
        _ places: PlaceholderPlaces, credential: String, beside use: PlaceholderUse?
    ) throws(PlaceholderFault) {
        guard places.isRequired else { return }
        let search = CredentialSearch(places)
        for line in fields.lines where search.isCredential(field: fields.name(of: line)) {
            if let use, case .line(line)? = findings.first?.place, !use.holdsMore { continue }
            let name = String(decoding: fields.name(of: line), as: UTF8.self)
            throw .ownCredential(place: "the field \(name)", credential: credential)
        }
        if let place = search.place(inTarget: target, beside: use?.placeholder.text) {
            throw .ownCredential(place: place, credential: credential)
        }
    }

    // MARK: places

    private func placeInField(
        _ line: FieldLine, _ placeholder: Placeholder, _ places: PlaceholderPlaces
    ) -> PlaceholderUse.Place? {
        let (name, value) = (fields.name(of: line), fields.value(of: line))
        if line.name == .authorization { return placeInAuthorization(value, placeholder) }
        guard places.fields.contains(where: { equalsIgnoringCase(Array($0.utf8)[...], name) }),
            let range = range(of: placeholder.text, in: value)
        else { return nil }
        return .field(
            name: Array(name), before: Array(value[..<range.lowerBound]), after: Array(value[range.upperBound...]))
    }

    private func placeInAuthorization(
        _ value: ArraySlice<UInt8>, _ placeholder: Placeholder
    ) -> PlaceholderUse.Place? {
        let scheme = value.prefix { $0 != 0x20 }
        let rest = value.dropFirst(scheme.count).drop { $0 == 0x20 }
        if scheme.elementsEqual(placeholder.text), rest.isEmpty { return .authorization(scheme: []) }
        if rest.elementsEqual(placeholder.text) { return .authorization(scheme: Array(scheme) + [0x20]) }
        guard equalsIgnoringCase(scheme, "Basic"), let pair = decodeBase64(rest),
            let colon = pair.firstIndex(of: 0x3A)
        else { return nil }
        let (user, password) = (Array(pair[..<colon]), Array(pair[(colon + 1)...]))
        guard user == placeholder.text || password == placeholder.text else { return nil }
        return .basic(user: user, password: password)
    }

    private func placeInTarget(
        _ placeholder: Placeholder, _ places: PlaceholderPlaces
    ) -> PlaceholderUse.Place? {
        var range: Range<Int>?
        if let member = queryMembers.first(where: {
            places.query.contains($0.name) && percentDecode($0.value) == placeholder.text
        }) {
            range = member.value.startIndex..<member.value.endIndex
        } else if places.path {
            let path = target.prefix { $0 != 0x3F }
            let segment = path.split(separator: 0x2F).first { percentDecode($0) == placeholder.text }
            range = segment.map { $0.startIndex..<$0.endIndex }
        }
        return range.map {
            .target(before: Array(target[..<$0.lowerBound]), after: Array(target[$0.upperBound...]))
        }
    }

    private var queryMembers: [(name: String, value: ArraySlice<UInt8>)] {
        guard let mark = target.firstIndex(of: 0x3F) else { return [] }
        return target[(mark + 1)...].split(separator: 0x26).map { member in
            let name = member.prefix { $0 != 0x3D }
            return (String(decoding: percentDecode(name), as: UTF8.self), member.dropFirst(name.count + 1))
        }
    }

    private func name(of place: Finding.Place) -> String {
        switch place {
        case .target: "the target"
        case .line(let line): "the field \(String(decoding: fields.name(of: line).prefix(64), as: UTF8.self))"
        }
    }

    private func range(of text: [UInt8], in value: ArraySlice<UInt8>) -> Range<Int>? {
        guard value.count >= text.count else { return nil }
        return (value.startIndex...(value.endIndex - text.count)).first {
            value[$0..<($0 + text.count)].elementsEqual(text)
        }
        .map { $0..<($0 + text.count) }
    }

    private static func placeholders(in bytes: ArraySlice<UInt8>, _ index: PlaceholderIndex) -> [Placeholder] {
        var scanner = PlaceholderScanner()
        var found: [Placeholder] = []
        var offset = 0
        while let position = scanner.next(in: bytes.span, from: &offset, index) {
            found.append(index.placeholders[position])
        }
        return found
    }
}
