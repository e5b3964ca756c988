/// Documents that clients take together: one that changes, and signatures and checksums of it. A new one beside an old one is an error to the client.
package enum CompanionDocuments {
    /// What follows the name of the document in those of its companions.
    private static let endings = [".asc", ".gpg", ".sig", ".sha1", ".md5", ".sha256", ".sha512"].map { Array($0.utf8) }

    /// Whether a document of this name changes, and has companions: in archives of Debian, of rpm and of Maven, and lists of checksums. The lengths
    /// come first, because this is on the way of every response that is stored.
    private static func isDocument(_ name: ArraySlice<UInt8>) -> Bool {
        switch name.count {
        case 7: name.elementsEqual("Release".utf8)
        case 10 where name.elementsEqual("repomd.xml".utf8): true
        case 18 where name.elementsEqual("maven-metadata.xml".utf8): true
        case 10...: name.last == UInt8(ascii: "S") && isListOfSums(name.suffix(10))
        default: false
        }
    }

    private static func isListOfSums(_ ending: ArraySlice<UInt8>) -> Bool {
        ending.elementsEqual("SHA256SUMS".utf8) || ending.elementsEqual("SHA512SUMS".utf8)
    }

    /// The keys of the documents that belong together with the one that has this key. Empty if it is none of them.
    ///
    /// - Parameter key: a normalised URI, perhaps with `#` and what says for whom the response is, which the companions have as well.
    package static func others(of key: [UInt8]) -> [[UInt8]] {
        var end = key.count
        var (slash, dot) = (-1, -1)
        // Backwards: names are short, and URIs long.
        var index = key.count
        while index > 0, slash < 0 {
            index -= 1
            switch key[index] {
            case UInt8(ascii: "#"): (end, dot) = (index, -1)
            case UInt8(ascii: "/") where index < end: slash = index
            case UInt8(ascii: ".") where dot < 0: dot = index
            default: break
            }
        }
        guard slash >= 0 else { return [] }
        let name = key[(slash + 1)..<end]
        if isDocument(name) { return others(of: key, name.indices, besides: []) }
        guard dot > slash, case let base = (slash + 1)..<dot, isDocument(key[base]),
            case let ending = key[dot..<end], endings.contains(where: { $0.elementsEqual(ending) })
        else { return [] }
        return others(of: key, base, besides: ending)
    }

    private static func others(of key: [UInt8], _ base: Range<Int>, besides ending: ArraySlice<UInt8>) -> [[UInt8]] {
        let rest = key[(base.upperBound + ending.count)...]
        return ([[]] + endings).filter { !$0.elementsEqual(ending) }.map { key[..<base.upperBound] + $0 + rest }
    }
}
