/// Rows by place and shape of the path, within bounds.
///
/// More than `siblingsMax` exact paths in one directory become the directory, `/directory/*`. More than `shapesMax` shapes at one place are
/// joined in their deepest common directories until half as many are left. The root is never joined: what does not fit is left out.
package struct Table: Sendable, Equatable {
    package private(set) var places: [Place: [PathShape?: Row]] = [:]

    static let placesMax = 512
    static let shapesMax = 64
    static let siblingsMax = 8

    /// - Returns: false if there is no room for it.
    mutating func add(_ row: Row, at place: Place, _ shape: PathShape?) -> Bool {
        guard places[place] != nil || places.count < Table.placesMax else { return false }
        var shapes = places[place] ?? [:]
        let shape = shape.map { Table.directory(of: $0, in: shapes) ?? $0 }
        if shapes[shape] == nil {
            shapes[shape] = row
            if let shape { Table.joinSiblings(of: shape, in: &shapes) }
            if shapes.count > Table.shapesMax { Table.joinDirectories(in: &shapes) }
            guard shapes.count <= Table.shapesMax else { return false }
        } else {
            shapes[shape]?.add(row)
        }
        places[place] = shapes
        return true
    }

    /// For reading a journal.
    mutating func restore(_ row: Row, at place: Place, _ shape: PathShape?) -> Bool {
        guard places[place] != nil || places.count < Table.placesMax, places[place, default: [:]][shape] == nil,
            places[place, default: [:]].count < Table.shapesMax
        else { return false }
        places[place, default: [:]][shape] = row
        return true
    }

    mutating func forgetFirstRun() {
        places = places.mapValues { shapes in
            shapes.mapValues { row in
                var row = row
                row.runs >>= 1
                return row
            }.filter { $0.value.runs != 0 }
        }.filter { !$0.value.isEmpty }
    }

    /// The shape of a directory that has the path already.
    private static func directory(of shape: PathShape, in shapes: [PathShape?: Row]) -> PathShape? {
        for directory in shape.directories where shapes[.below(directory)] != nil { return .below(directory) }
        return nil
    }

    private static func joinSiblings(of shape: PathShape, in shapes: inout [PathShape?: Row]) {
        guard let parent = shape.parent, shapes.keys.count(where: { $0?.parent == parent }) > siblingsMax else {
            return
        }
        join(parent, in: &shapes) { $0.parent == parent }
    }

    private static func joinDirectories(in shapes: inout [PathShape?: Row]) {
        var depth = shapes.keys.compactMap { $0?.directories.count }.max() ?? 0
        while depth > 0, shapes.count > shapesMax / 2 {
            let directories = shapes.keys.compactMap { shape in
                shape.flatMap { $0.directories.count >= depth ? $0.directories[depth - 1] : nil }
            }
            let counts = Dictionary(directories.map { ($0, 1) }, uniquingKeysWith: +)
            for (directory, count) in counts where count > 1 {
                join(directory, in: &shapes) { $0.directories.contains(directory) }
            }
            depth -= 1
        }
    }

    private static func join(_ directory: String, in shapes: inout [PathShape?: Row], _ isInside: (PathShape) -> Bool) {
        let inside = shapes.keys.compactMap(\.self).filter(isInside).sorted()
        guard let first = inside.first, var joined = shapes[first] else { return }
        for shape in inside.dropFirst() { if let row = shapes[shape] { joined.add(row) } }
        for shape in inside { shapes[shape] = nil }
        if var existing = shapes[.below(directory)] {
            existing.add(joined)
            joined = existing
        }
        shapes[.below(directory)] = joined
    }
}
