"""The rules of SIMAT, against the published files where there are any."""

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.generators.simat.triplets import (
    RELATIONS,
    SUBJECTS,
    TripletSettings,
    changes_of,
    clean_name,
    clean_predicate,
    is_plausible,
    load_vocabulary,
    select_triplets,
)
from eqforge.generators.simat.wording import are_synonyms, load_synonyms, write_caption
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.simat import (
    Part,
    Region,
    Triplet,
    read_retrieval_db,
    read_simat_captions,
    read_transfos,
    read_triplets,
)
from eqforge.transforms.simat.crops import CropSettings, crop_box


def triplet(text: str) -> Triplet:
    subject, relation, target = text.split("/")
    return Triplet(subject=subject, relation=relation, object=target)


def region(text: str, image: int, number: int = 0) -> Region:
    box = CornerBox(x0=10, y0=10, x1=90, y1=90)
    return Region(
        region_id=f"{image}-{number}",
        image_id=str(image),
        triplet=triplet(text),
        subject_box=box,
        object_box=box,
    )


def reasons(refused: dict[Triplet, Rejection]) -> dict[str, str]:
    return {found.triplet_id: rejection.reason for found, rejection in refused.items()}


# --- triplets


def test_each_rule_refuses_what_the_rules_before_it_left() -> None:
    shown = [
        *("man/touching/bench", "man/touching/cat", "man/touching/dog", "dog/touching/bench"),
        *("man/licking/bench", "man/licking/cat", "dog/licking/dog", "cow/biting/bench"),
    ]
    regions = [region(text, image) for text in shown for image in (1, 2)]
    regions += [region("man/touching/bench", 3), region("man/touching/dog", 3)]
    regions += [region("man/sniffing/tree", 1)]  # one region
    regions += [region("man/biting/rope", image) for image in (1, 2)]  # one relation of the object

    kept, refused = select_triplets(regions, TripletSettings(top_objects=2), published=True)

    assert reasons(refused) == {
        "man/sniffing/tree": "too_few_regions",
        "man/biting/rope": "one_way_object",
        "man/touching/cat": "rare_object",
        "dog/licking/dog": "no_neighbour",
        "cow/biting/bench": "no_neighbour",
    }
    assert kept[triplet("man/touching/bench")] == 3
    assert len(kept) + len(refused) == len({r.triplet for r in regions})


def test_corrected_counts_images_and_breaks_ties_by_the_alphabet() -> None:
    regions = [region("man/touching/zebra", 1, n) for n in (0, 1)]  # two regions of one image
    regions += [region(f"man/{verb}/{what}", n) for verb in ("touching", "biting")
                for what in ("pig", "cow") for n in (1, 2)]  # fmt: skip

    published, _ = select_triplets(regions, TripletSettings(top_objects=1), published=True)
    corrected, refused = select_triplets(regions, TripletSettings(top_objects=1), published=False)

    assert {found.object for found in published} == {"pig"}
    assert {found.object for found in corrected} == {"cow"}
    assert reasons(refused)["man/touching/zebra"] == "too_few_regions"


def test_the_published_triplets_follow_from_the_published_regions(data_folder: Path) -> None:
    """All 645 and no other, with 20 objects of each subject and relation; the paper says 10."""
    regions = read_retrieval_db(data_folder / "simat" / "retrieval_db.tsv")
    published = set(read_triplets(data_folder / "simat" / "triplets.csv").values())

    kept, refused = select_triplets(regions, TripletSettings(top_objects=20), published=True)

    assert set(kept) == published
    assert len(published) == 645
    assert reasons(refused).keys().isdisjoint(found.triplet_id for found in published)
    ten, _ = select_triplets(regions, TripletSettings(top_objects=10), published=True)
    assert len(ten) == 489
    assert set(ten) < published


@pytest.mark.parametrize("name", ["min_regions", "min_relations", "top_objects"])
def test_limits_below_one_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"--{name.replace('_', '-')} 0: expected 1 or more"):
        TripletSettings(**{name: 0})


# --- queries


def test_changes_are_all_pairs_that_differ_in_one_word() -> None:
    known = [triplet("/".join(words)) for words in product("ab", "cd", "efg")][:-2]

    found = {
        (change.source, change.target)
        for changes in changes_of(known).values()
        for change in changes
    }

    def distance(one: Triplet, other: Triplet) -> int:
        pairs = zip(one.triplet_id.split("/"), other.triplet_id.split("/"), strict=True)
        return sum(a != b for a, b in pairs)

    assert found == {(a, b) for a in known for b in known if distance(a, b) == 1}


def test_every_published_query_is_proposed_and_has_the_published_weight(data_folder: Path) -> None:
    """8,933 of the dev split; `norm2` counts a word over both splits, subjects and objects."""
    triplets = read_triplets(data_folder / "simat" / "triplets.csv")
    queries = list(read_transfos(data_folder / "simat" / "transfos_dev.csv"))
    proposed = {
        (found, change.part, change.words): change
        for found, changes in changes_of(set(triplets.values())).items()
        for change in changes
    }
    assert len(queries) == 8_933
    number = Counter(found for found, _, _ in proposed)
    assert sum(number[found] for found in triplets.values()) == 118_720
    assert all((triplets[q.region_id], q.part, (q.source, q.target)) in proposed for q in queries)

    dev = Counter(query.source for query in queries)
    both = {query.source: query.norm2 for query in queries}
    assert len({(query.source, query.norm2) for query in queries}) == len(both), "one per word"
    test = {word: both[word] - dev[word] for word in dev}
    assert min(test.values()) >= 0
    # 17,996 queries in both splits: those of the words that only the test split has are missing.
    assert sum(both.values()) == 17_957
    assert sum(test.values()) == 9_063 - (17_996 - 17_957)

    counted = dev + Counter(test)
    assert all(counted[query.source] == query.norm2 for query in queries)


@pytest.mark.parametrize(
    ("part", "one", "other", "expected"),
    [
        ("object", "couch", "sofa", True),
        ("object", "rock", "rocks", True),
        ("object", "bench", "benches", True),
        ("object", "puppy", "puppies", True),
        ("object", "bus", "bush", False),
        ("object", "bench", "chair", False),
        ("relation", "laying in", "sleeping on", True),
        ("subject", "man", "woman", False),
    ],
)
def test_synonyms_are_words_of_the_list_and_one_and_many(
    part: Part, one: str, other: str, expected: bool
) -> None:
    found = load_synonyms()
    assert are_synonyms(part, one, other, found) is expected
    assert are_synonyms(part, other, one, found) is expected


def test_a_users_synonyms_take_the_place_of_the_built_in_ones(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("bench, seat,chair\n")
    found = load_synonyms(tmp_path / "words.txt")
    assert are_synonyms("object", "seat", "bench", found)
    assert not are_synonyms("object", "couch", "sofa", found)
    (tmp_path / "words.txt").write_text("a,b\nalone\n")
    with pytest.raises(InputError, match=r"words.txt: line 2: expected two or more words"):
        load_synonyms(tmp_path / "words.txt")


# --- words and captions


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("Man", "sits on", "the bench"), "man/sitting on a/bench"),
        (("a dog", "is lying on", "Grass."), "dog/laying in/grass"),
        (("cat", "LICKING", "cat"), "cat/licking/cat"),
        (("woman", "sitting on a", "bed/sofa"), "woman/sitting on a/bed sofa"),
        (("man", "next to", "bench"), None),
        (("tree", "touching", "wall"), None),
        (("man", "touching", " "), None),
    ],
)
def test_annotators_names_become_the_names_that_stand(
    names: tuple[str, str, str], expected: str | None
) -> None:
    found = load_vocabulary().triplet(*names)
    assert (None if found is None else found.triplet_id) == expected


def test_the_names_of_the_published_files_are_the_vocabulary(data_folder: Path) -> None:
    found = {r.triplet for r in read_retrieval_db(data_folder / "simat" / "retrieval_db.tsv")}
    assert {each.subject for each in found} == set(SUBJECTS)
    assert {each.relation for each in found} == set(RELATIONS)


def test_a_users_vocabulary_and_aliases_are_used(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    path.write_text('{"subjects": {"man": ["guy"]}, "relations": {"riding": ["rides", "on top"]}}')
    words = replace(
        load_vocabulary(path),
        objects={"mare": "horse", "bloke": "guy"},
        predicates={"astride": "rides"},
    )
    for subject, predicate in (("guy", "rides"), ("man", "on top"), ("bloke", "astride")):
        assert words.triplet(subject, predicate, "a mare") == triplet("man/riding/horse")
    path.write_text('{"subjects": {}, "relations": {"riding": []}}')
    with pytest.raises(InputError, match=r"subjects: expected a name and its spellings"):
        load_vocabulary(path)
    assert (clean_name(" The  Red / Bus. "), clean_predicate("is on a")) == ("red bus", "on")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("man/sitting on a/chair", "A man sitting on a chair."),
        ("elephant/touching/elephant", "An elephant touching another elephant."),
        ("people/sitting on a/grass", "People sitting on the grass."),
        ("bear/sitting on a/outside", "A bear sitting outside."),
        ("cat/laying in/couch", "A cat lying on a couch."),
        ("bear/laying in/wall", "A bear lying against a wall."),
        ("boy/sitting on a/field", "A boy sitting in a field."),
        ("man/sitting on a/table", "A man sitting at a table."),
        ("cat/sitting on a/table", "A cat sitting on a table."),
        ("girl/running in/road", "A girl running on a road."),
        ("man/waiting at/bus", "A man waiting for a bus."),
        ("cow/eating from/water", "A cow drinking water."),
        ("giraffe/eating from/leaf", "A giraffe eating a leaf."),
        ("girl/playing with/park", "A girl playing in a park."),
        ("man/jumping on/skis", "A man jumping on skis."),
        ("zebra/running in/water", "A zebra running in water."),
    ],
)
def test_a_template_reads_as_a_sentence(name: str, expected: str) -> None:
    assert write_caption(triplet(name)) == expected


def test_the_published_template_keeps_the_names_of_relations() -> None:
    assert write_caption(triplet("bear/laying in/wall"), published=True) == (
        "A bear laying in a wall."
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("woman/laying in/head", False),
        ("bird/sitting on a/hand", True),
        ("man/running in/man", False),
        ("giraffe/eating from/woman", False),
        ("cow/sitting on a/cow", False),
        ("man/leaning on/kite", False),
        ("man/playing with/kite", True),
        ("bear/laying in/wall", True),
    ],
)
def test_what_can_hardly_be_shown_is_implausible(name: str, expected: bool) -> None:
    assert is_plausible(triplet(name)) is expected


def test_three_of_four_published_captions_are_those_of_the_template(data_folder: Path) -> None:
    folder = data_folder / "simat"
    order = list(dict.fromkeys(read_triplets(folder / "triplets.csv").values()))
    published = read_simat_captions(folder / "captions.txt", order)
    equal = sum(
        write_caption(found, published=True) == caption for found, caption in published.items()
    )
    assert equal / len(published) > 0.7


# --- crops


def boxes(*values: int) -> Region:
    x0, y0, x1, y1 = values
    return Region(
        region_id="1",
        image_id="1",
        triplet=triplet("man/touching/dog"),
        subject_box=CornerBox(x0=x0, y0=y0, x1=x0 + 20, y1=y0 + 20),
        object_box=CornerBox(x0=x1 - 10, y0=y1 - 10, x1=x1, y1=y1),
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_square_holds_both_boxes_and_is_as_small_as_can_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width, height = (int(n) for n in rng.integers(100, 300, 2))
    x0, y0 = int(rng.integers(0, width - 60)), int(rng.integers(0, height - 60))
    x1, y1 = int(rng.integers(x0 + 30, width)), int(rng.integers(y0 + 30, height))
    found = crop_box(boxes(x0, y0, x1, y1), (width, height), CropSettings(min_crop_px=1))
    assert isinstance(found, CornerBox)
    side = max(x1 - x0, y1 - y0)
    assert (found.width, found.height) == (min(side, width), min(side, height))
    assert found.x0 <= x0
    assert found.y0 <= y0
    assert found.x1 >= x1
    assert found.y1 >= y1
    assert found.x0 >= 0
    assert found.y0 >= 0
    assert found.x1 <= width
    assert found.y1 <= height


def test_the_published_box_is_clipped_and_small_or_outside_ones_are_refused() -> None:
    settings = CropSettings(crop="published", min_crop_px=64)
    inside = boxes(0, 0, 80, 50)
    published = Region(
        region_id="1", image_id="1", triplet=inside.triplet, subject_box=inside.subject_box,
        object_box=inside.object_box, box=CornerBox(x0=-5, y0=0, x1=70, y1=400),
    )  # fmt: skip
    assert crop_box(published, (200, 100), settings) == CornerBox(x0=0, y0=0, x1=70, y1=100)
    assert crop_box(inside, (200, 100), settings) == CornerBox(x0=0, y0=0, x1=80, y1=50)
    assert crop_box(boxes(0, 0, 40, 40), (200, 100), settings) == Rejection(
        reason="crop_too_small", value=40, threshold=64
    )
    outside = crop_box(boxes(190, 0, 300, 50), (150, 100), settings)
    assert isinstance(outside, Rejection)
    assert outside.reason == "bad_box"
