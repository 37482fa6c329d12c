"""Files with chunks that were damaged after they were written."""

import h5py


def damage_chunks(path, dataset, chunks):
    """Flips the last stored byte of some chunks: a part of gzip's or fletcher32's checksum. h5py says where they lie."""
    with h5py.File(path) as file:
        places = [file[dataset].id.get_chunk_info(n) for n in chunks]
    with open(path, "r+b") as file:
        for place in places:
            file.seek(place.byte_offset + place.size - 1)
            last = file.read(1)[0]
            file.seek(place.byte_offset + place.size - 1)
            file.write(bytes([last ^ 255]))
