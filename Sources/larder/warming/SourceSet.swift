/// All URLs of a `srcset` attribute (HTML §4.8.4.2.2). Which of them a browser loads depends on its screen.
///
/// URLs may contain commas, and end at white space. Descriptors end at a comma outside of parentheses.
func sourceSetReferences(_ value: [UInt8]) -> [[UInt8]] {
    var references: [[UInt8]] = []
    var rest = value[...]
    while true {
        rest = rest.drop { isSpace($0) || $0 == comma }
        let url = rest.prefix { !isSpace($0) }
        guard !url.isEmpty else { return references }
        rest = rest.dropFirst(url.count)
        if url.last == comma {
            var url = url
            while url.last == comma { url.removeLast() }
            references.append(Array(url))
            continue
        }
        references.append(Array(url))
        var depth = 0
        rest = rest.drop { byte in
            switch byte {
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"): depth = max(0, depth - 1)
            default: break
            }
            return byte != comma || depth > 0
        }
    }
}

private let comma = UInt8(ascii: ",")
