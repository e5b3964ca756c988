import Message

/// A value of a `type` condition: `text/html`, `text/*`, `application/*+json`, `*/*` (RFC 9110 §8.3.1, §12.5.1).
///
/// Case and parameters do not matter. A response without `Content-Type` does not match.
package struct MediaTypePattern: Sendable, Hashable, CustomStringConvertible {
    /// In lower case.
    package let description: String
    /// The type; nil matches every type.
    private let type: [UInt8]?
    /// The subtype, or its suffix if `isSuffix`.
    private let subtype: [UInt8]
    private let isSuffix: Bool

    /// Returns nil if the text has none of these forms.
    package init?(_ text: String) {
        let text = text.lowercased()
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { Array($0) }
        guard parts.count == 2, let first = parts[1].first else { return nil }
        let star = [UInt8(ascii: "*")]
        type = parts[0] == star ? nil : parts[0]
        isSuffix = first == star[0]
        subtype = isSuffix ? Array(parts[1].dropFirst()) : parts[1]
        guard type.map(isToken) ?? (parts[1] == star), subtype.isEmpty || isToken(subtype),
            !isSuffix || subtype.isEmpty || subtype.first == UInt8(ascii: "+")
        else { return nil }
        description = text
    }

    /// - Parameter value: the value of a `Content-Type` field.
    package func matches(_ value: ArraySlice<UInt8>) -> Bool {
        let essence = trimOWS(value.prefix { $0 != UInt8(ascii: ";") })
        guard let slash = essence.firstIndex(of: UInt8(ascii: "/")) else { return false }
        if let type, !equalsIgnoringCase(essence[..<slash], type) { return false }
        let own = essence[(slash + 1)...]
        return !own.isEmpty && own.count >= subtype.count
            && equalsIgnoringCase(isSuffix ? own.suffix(subtype.count) : own, subtype)
    }
}

/// Whether the bytes are a token without `*`, which names of media types cannot contain (RFC 6838 §4.2).
private func isToken(_ bytes: [UInt8]) -> Bool {
    !bytes.isEmpty && bytes.allSatisfy { isTchar($0) && $0 != UInt8(ascii: "*") }
}
