/// Documents that clients take together: one that changes, and signatures and checksums of it. A new one beside an old one is an error to the client.
package enum CompanionDocuments {
    /// What follows the name of the document in those of its companions.
    private static let endings = [".asc", ".gpg", ".sig", ".sha1", ".md5", ".sha256", ".sha512"].map { Array($0.utf8) }
    /// Documents that change under one name: archives of Debian, of rpm, of Maven, and lists of checksums.
    private static let names = ["Release", "repomd.xml", "maven-metadata.xml"].map { Array($0.utf8) }
    private static let nameEndings = ["SHA256SUMS", "SHA512SUMS"].map { Array($0.utf8) }

    /// The keys of the documents that belong together with the one that has this key. Empty if it is none of them.
    ///
    /// - Parameter key: a normalised URI, perhaps with `#` and what says for whom the response is, which the companions have as well.
    package static func others(of key: [UInt8]) -> [[UInt8]] {
        let end = key.firstIndex(of: UInt8(ascii: "#")) ?? key.count
        guard let slash = key[..<end].lastIndex(of: UInt8(ascii: "/")) else { return [] }
        let name = key[(slash + 1)..<end]
        let ending = endings.first { name.count > $0.count && name.suffix($0.count).elementsEqual($0) }
        let base = name.dropLast(ending?.count ?? 0)
        guard
            names.contains(where: { base.elementsEqual($0) })
                || nameEndings.contains(where: { base.count >= $0.count && base.suffix($0.count).elementsEqual($0) })
        else { return [] }
        return ([[]] + endings).filter { $0 != ending ?? [] }.map { key[...slash] + base + $0 + key[end...] }
    }
}
