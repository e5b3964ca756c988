/// Where a secret of the configuration comes from.
package enum SecretSource: Equatable, Sendable {
    /// The configuration itself.
    case text(Secret)
    /// The first line of a file, which may change while Larder runs.
    case file(String)
    /// A variable of the environment.
    case environment(String)
    /// The first line that can be read from an open descriptor. It can be read once.
    case descriptor(Int32)
    /// The first line that a program writes: its path or name, and its arguments.
    case command([String])
}

extension SecretSource: CustomStringConvertible {
    /// Does not say what may be secret: the text itself, and the arguments of a program.
    package var description: String {
        switch self {
        case .text: "the configuration"
        case .file(let path): "the file \(path)"
        case .environment(let name): "the variable \(name)"
        case .descriptor(let number): "descriptor \(number)"
        case .command(let words): "the program \(words.first ?? "")"
        }
    }
}

extension SecretSource {
    /// The longest secret, in bytes. A field with a longer one would not fit into the heads that servers take.
    package static let bytesMax = 8 << 10

    /// The longest keytab, in bytes: a few hundred keys.
    package static let keytabBytesMax = 64 << 10

    /// The keytab in what was read, if it can be one: all begin with the version of their format, 5.1 or 5.2.
    package func keytab(in bytes: [UInt8]) throws(SecretFault) -> Secret {
        guard !bytes.isEmpty else { throw .empty }
        guard bytes.starts(with: [5, 2]) || bytes.starts(with: [5, 1]) else { throw .notAKeytab }
        return Secret(bytes)
    }

    /// The secret in what was read. Spaces belong to it.
    package func secret(in bytes: [UInt8]) throws(SecretFault) -> Secret {
        let secret =
            switch self {
            case .text, .environment: bytes[...]
            case .file, .descriptor, .command: bytes.prefix { $0 != UInt8(ascii: "\n") }
            }
        guard !secret.contains(UInt8(ascii: "\n")) else { throw .hasLineFeed }
        guard !secret.contains(UInt8(ascii: "\r")) else { throw .hasCarriageReturn }
        guard !secret.contains(0) else { throw .hasNUL }
        guard secret.count <= Self.bytesMax else { throw .tooLong }
        // An empty password can be meant. An empty file, variable or output is a mistake.
        if case .text = self { return Secret(secret) }
        guard !secret.isEmpty else { throw .empty }
        return Secret(secret)
    }
}

/// Why what was read is no secret. In a field, line ends would begin another field.
package enum SecretFault: Error, Equatable, CaseIterable, Sendable {
    case empty, hasLineFeed, hasCarriageReturn, hasNUL, tooLong, notAKeytab

    /// A sentence for the person who wrote the configuration. It never shows the secret.
    package func text(of source: SecretSource) -> String { "the secret from \(source) \(complaint)" }

    private var complaint: String {
        switch self {
        case .empty: "is empty"
        case .hasLineFeed: "contains a line feed"
        case .hasCarriageReturn: "contains a carriage return. Lines must end with a line feed alone"
        case .hasNUL: "contains a NUL byte. It must be text"
        case .notAKeytab: "is no keytab: ktutil and kadmin make them"
        case .tooLong: "is longer than \(SecretSource.bytesMax) bytes"
        }
    }
}
