/// A room as Package.swift declares it: `core("Name", floor: 2, ["A", "B"])`.
struct DeclaredRoom: Equatable {
    enum Kind: String, CaseIterable {
        case core, parser, edge, driver
    }
    var name: String
    var kind: Kind
    /// It uses rooms of lower floors alone.
    var floor: Int
    var dependencies: Set<String>
}

/// The rooms of Package.swift.
enum Rooms {
    static let declared = read((try? Tree.text("Package.swift")) ?? "")
    static let coreKinds: Set<DeclaredRoom.Kind> = [.core, .parser]
    static let core = names(of: coreKinds)
    static let edge = names(of: [.edge])
    static let drivers = names(of: [.driver])
    static let all = core.union(edge).union(drivers)

    private static func names(of kinds: Set<DeclaredRoom.Kind>) -> Set<String> {
        Set(declared.filter { kinds.contains($0.kind) }.map(\.name))
    }

    static func named(_ name: String) -> DeclaredRoom? { declared.first { $0.name == name } }

    /// Reads the calls that declare rooms, and the target of the command line, which is no library and stands above all others.
    static func read(_ manifest: String) -> [DeclaredRoom] {
        let text = manifest.filter { $0 != "\n" && $0 != " " }
        var rooms = DeclaredRoom.Kind.allCases.flatMap { kind in
            text.split(separator: "\(kind.rawValue)(\"").dropFirst().compactMap { room(kind, $0) }
        }
        let top = (rooms.map(\.floor).max() ?? 0) + 1
        for call in text.split(separator: "executableTarget(name:\"larder\",dependencies:[").dropFirst() {
            rooms.append(DeclaredRoom(name: "larder", kind: .driver, floor: top, dependencies: names(in: call)))
        }
        return rooms.sorted { ($0.floor, $0.name) < ($1.floor, $1.name) }
    }

    /// - Parameter call: what stands behind the opening quotation mark of the name.
    private static func room(_ kind: DeclaredRoom.Kind, _ call: Substring) -> DeclaredRoom? {
        let name = call.prefix { $0 != "\"" }
        let rest = call.dropFirst(name.count)
        guard rest.hasPrefix("\",floor:") else { return nil }
        let digits = rest.dropFirst("\",floor:".count).prefix { $0.isNumber }
        let list = rest.dropFirst("\",floor:".count + digits.count)
        guard let floor = Int(digits) else { return nil }
        let dependencies = list.hasPrefix(",[") ? names(in: list.dropFirst(2)) : []
        return DeclaredRoom(name: String(name), kind: kind, floor: floor, dependencies: dependencies)
    }

    private static func names(in list: Substring) -> Set<String> {
        Set(list.prefix { $0 != "]" }.split(separator: ",").map { $0.filter { $0 != "\"" } })
    }
}
