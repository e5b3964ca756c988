import Message

/// Challenges of one response beyond this number are ignored.
package let challengeCountMax = 16
/// A challenge with more parameters is malformed.
package let challengeParameterCountMax = 32

/// Reads the field lines of one `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 §11.6.1).
///
/// A comma separates challenges as well as the parameters of one challenge. A list element that begins with a scheme and white space, or is a
/// token alone, begins a challenge; `name=value` continues it. What is malformed spoils the challenge in which it stands, and no other. A
/// quoted string that does not end reaches to the end of its line.
package func parseChallenges(_ lines: some Sequence<ArraySlice<UInt8>>) -> [Challenge] {
    var result: [Challenge] = []
    for line in lines {
        var reader = ChallengeReader()
        forEachListElement(line) { reader.read($0) }
        result += reader.finish()
    }
    return Array(result.prefix(challengeCountMax))
}

/// Reads `#auth-param` (RFC 9110 §11.2), as in `Authentication-Info`. Returns nil if an element is no parameter, or if one is repeated.
func parseAuthParameters(_ value: ArraySlice<UInt8>) -> [AuthParameter]? {
    var result: [AuthParameter]? = []
    forEachListElement(value) { element in
        guard let parameter = AuthParameter(element), result?.contains(where: { $0.name == parameter.name }) == false,
            result?.count ?? 0 < challengeParameterCountMax
        else {
            result = nil
            return
        }
        result?.append(parameter)
    }
    return result
}

/// Assembles the challenges of one field line from its list elements.
private struct ChallengeReader {
    private var finished: [Challenge] = []
    private var current = Current.none

    /// The challenge to which the next parameter belongs.
    private enum Current {
        case none
        case parameters(scheme: [UInt8], [AuthParameter])
        case token68(scheme: [UInt8], [UInt8])
    }

    mutating func read(_ element: ArraySlice<UInt8>) {
        let word = element.prefix(while: isTchar)
        let rest = element[word.endIndex...]
        let content = rest.drop(while: isOWS)
        if content.first == UInt8(ascii: "=") {
            add(AuthParameter(element))
        } else if !word.isEmpty, rest.isEmpty || content.startIndex > rest.startIndex {
            begin(word.map(asciiLowercased), content)
        } else {
            current = .none
        }
    }

    mutating func finish() -> [Challenge] {
        switch current {
        case .none: break
        case .parameters(let scheme, let parameters):
            finished.append(Challenge(scheme: scheme, content: .parameters(parameters)))
        case .token68(let scheme, let token):
            finished.append(Challenge(scheme: scheme, content: .token68(token)))
        }
        current = .none
        return finished
    }

    private mutating func begin(_ scheme: [UInt8], _ content: ArraySlice<UInt8>) {
        _ = finish()
        if content.isEmpty {
            current = .parameters(scheme: scheme, [])
        } else if let parameter = AuthParameter(content) {
            current = .parameters(scheme: scheme, [parameter])
        } else if isToken68(content) {
            current = .token68(scheme: scheme, Array(content))
        }
    }

    /// - Parameter parameter: nil if it is malformed.
    private mutating func add(_ parameter: AuthParameter?) {
        guard case .parameters(let scheme, let parameters) = current, let parameter,
            !parameters.contains(where: { $0.name == parameter.name }), parameters.count < challengeParameterCountMax
        else {
            current = .none
            return
        }
        current = .parameters(scheme: scheme, parameters + [parameter])
    }
}
