package import Message

extension Fields {
    /// The fields without the `Set-Cookie` lines of the cookies that are not stored. Names are compared as they are: case matters
    /// (RFC 6265 §5.3).
    package func withoutCookies(of particulars: HandlingParticulars?) -> Fields {
        guard contains(.setCookie), let names = particulars?.droppedCookies, !names.isEmpty else { return self }
        return dropping { $0.name == .setCookie && names.contains(Array(cookieName(value(of: $0)))) }
    }
}

/// What stands before "=" (RFC 6265 §5.2).
private func cookieName(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    trimOWS(value.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") })
}
