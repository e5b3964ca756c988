import Message

/// Something that a browser fetches in order to show a page.
struct PageReference: Equatable {
    enum Kind: Sendable { case page, stylesheet, other }
    var target: TargetURI
    /// What is expected there. Pages and stylesheets have references of their own.
    var kind: Kind
}

/// The sub-resources of a page, in order and without duplicates: from `link`, `script`, `img`, `source` and similar tags, from `srcset`,
/// and from `style` elements and attributes. They are resolved against `base`, and against `<base href>` from its position on.
func pageReferences(_ html: [UInt8], at base: TargetURI) -> [PageReference] {
    var collector = ReferenceCollector(base: base)
    var scanner = HTMLScanner(html)
    while let event = scanner.next(), !collector.isFull {
        switch event {
        case .tag(let tag): collector.add(tag)
        case .style(let text): collector.addStyles(text)
        }
    }
    return collector.references
}

/// The sub-resources of a stylesheet, whose URLs are relative to the stylesheet.
func stylesheetReferences(_ css: [UInt8], at base: TargetURI) -> [PageReference] {
    var collector = ReferenceCollector(base: base)
    collector.addStyles(css)
    return collector.references
}

private struct ReferenceCollector {
    /// No honest page has more references.
    static let referencesMax = 5000

    private var base: TargetURI
    private var hasBase = false
    private var seen: Set<[UInt8]> = []
    private(set) var references: [PageReference] = []

    init(base: TargetURI) { self.base = base }

    var isFull: Bool { references.count >= Self.referencesMax }

    mutating func add(_ tag: HTMLTag) {
        switch tag.name {
        case "base": setBase(tag)
        case "link": addLink(tag)
        case "script", "embed", "track", "audio": add(tag["src"])
        case "img":
            add(tag["src"])
            addSet(tag["srcset"])
        case "source":
            add(tag["src"])
            addSet(tag["srcset"])
        case "video":
            add(tag["src"])
            add(tag["poster"])
        case "iframe", "frame": add(tag["src"], .page)
        case "object": add(tag["data"])
        case "input": if tag["type"].map({ lowercased($0[...]) }) == "image" { add(tag["src"]) }
        case "image", "use": add(tag["href"] ?? tag["xlink:href"])  // in SVG
        case "body", "table", "td", "th": add(tag["background"])
        default: break
        }
        if let style = tag["style"] { addStyles(style) }
    }

    mutating func addStyles(_ css: [UInt8]) {
        for reference in StylesheetScanner.references(in: css) {
            add(reference.text, reference.isImport ? .stylesheet : .other)
        }
    }

    /// Only the first `base` with a URL counts (HTML §4.2.3).
    private mutating func setBase(_ tag: HTMLTag) {
        guard !hasBase, let href = tag["href"] else { return }
        hasBase = true
        if let target = webReference(href, from: base) { base = target }
    }

    /// The kinds of links that a browser fetches with the page. Others lead to other pages.
    private static let fetchedLinks: Set<String> = [
        "stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "manifest", "preload",
        "modulepreload", "prefetch",
    ]

    private mutating func addLink(_ tag: HTMLTag) {
        guard let value = tag["rel"] else { return }
        let kinds = Set(value.split(whereSeparator: isSpace).map { lowercased($0) })
        guard !kinds.isDisjoint(with: Self.fetchedLinks) else { return }
        add(tag["href"], kinds.contains("stylesheet") ? .stylesheet : .other)
        addSet(tag["imagesrcset"])
    }

    private mutating func addSet(_ value: [UInt8]?) {
        for reference in value.map(sourceSetReferences) ?? [] { add(reference) }
    }

    private mutating func add(_ reference: [UInt8]?, _ kind: PageReference.Kind = .other) {
        guard !isFull, let reference, let target = webReference(reference, from: base) else { return }
        if seen.insert(target.normalised).inserted { references.append(.init(target: target, kind: kind)) }
    }
}
