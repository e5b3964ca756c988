import Message

/// Writes the parameters of an authorization field.
struct AuthorizationText {
    private(set) var bytes: [UInt8]
    private var isFirst = true

    /// Parameters without a scheme before them.
    init() { bytes = [] }

    init(scheme: StaticString) { bytes = Message.bytes(of: scheme) + [UInt8(ascii: " ")] }

    /// `name="value"`, as a quoted-string (RFC 9110 §5.6.4).
    mutating func add(_ name: StaticString, quoted value: some Sequence<UInt8>) {
        begin(name)
        appendQuotedString(value, to: &bytes)
    }

    /// `name=value`, for a value that is a token.
    mutating func add(_ name: StaticString, _ value: some Sequence<UInt8>) {
        begin(name)
        bytes.append(contentsOf: value)
    }

    private mutating func begin(_ name: StaticString) {
        if !isFirst { bytes.append(", ") }
        isFirst = false
        bytes.append(name)
        bytes.append(UInt8(ascii: "="))
    }
}

/// Decodes percent-encoding. A "%" without two digits stays as it is.
func percentDecode(_ bytes: some Collection<UInt8>, plusIsSpace: Bool = false) -> [UInt8] {
    var rest = Array(bytes)[...]
    var result: [UInt8] = []
    while let byte = rest.popFirst() {
        let next = rest.startIndex
        if byte == UInt8(ascii: "%"), rest.count >= 2, let high = hexValue(rest[next]),
            let low = hexValue(rest[next + 1])
        {
            result.append(high << 4 | low)
            rest = rest.dropFirst(2)
        } else {
            result.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
        }
    }
    return result
}
