"""The banks of the sweep programme: invented, as many as the largest balance needs, each always the same by its id."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_ID = 1001

NAMES = (
    "First National Bank of {}",
    "{} Savings Bank",
    "Community Bank of {}",
    "{} Trust Company",
    "Merchants Bank of {}",
    "{} State Bank",
    "Farmers & Mechanics Bank of {}",
    "{} Commercial Bank",
    "Heritage Bank of {}",
    "Citizens National Bank of {}",
    "{} Federal Savings",
    "Union Bank of {}",
    "Peoples Bank of {}",
    "{} Community Trust",
    "Security State Bank of {}",
    "Pioneer Bank of {}",
    "{} Home Savings Bank",
    "Guaranty Bank of {}",
    "American Bank of {}",
    "Exchange Bank of {}",
)

PLACES = """
AK: Juneau; AL: Mobile, Huntsville; AR: Little Rock; AZ: Tucson, Yuma, Mesa;
CA: Fresno, Chico, Stockton, Modesto; CO: Colorado Springs; CT: New Haven; DE: Dover;
FL: Tampa, Gainesville; GA: Macon, Savannah, Columbus; HI: Hilo; IA: Cedar Rapids, Davenport;
ID: Boise, Pocatello; IL: Peoria, Rockford; IN: Gary, Fort Wayne, Evansville;
KS: Topeka, Wichita; KY: Lexington, Louisville; LA: Baton Rouge, Shreveport; MD: Annapolis;
ME: Augusta, Bangor; MI: Lansing, Flint, Grand Rapids, Kalamazoo;
MN: Duluth, Saint Paul, Rochester; MO: Springfield, Jefferson City; MS: Jackson, Hattiesburg;
MT: Helena, Butte, Billings; NC: Raleigh, Durham, Wilmington; ND: Fargo, Bismarck;
NE: Omaha, Lincoln; NH: Concord; NJ: Trenton; NM: Santa Fe, Las Cruces; NV: Reno, Henderson;
NY: Albany, Utica; OH: Akron, Dayton, Toledo; OK: Tulsa; OR: Salem, Eugene, Bend, Medford;
PA: Erie, Harrisburg; RI: Newport; SC: Charleston; SD: Pierre, Sioux Falls, Rapid City;
TN: Chattanooga, Knoxville; TX: Laredo, Lubbock, Waco, Amarillo; UT: Provo, Ogden;
VA: Roanoke, Norfolk; VT: Burlington; WA: Spokane, Tacoma; WI: Madison, Green Bay, Appleton;
WY: Casper
"""
"""States with their towns."""

CITIES = tuple(
    (city.strip(), state.strip())
    for state, cities in (line.split(":") for line in PLACES.split(";"))
    for city in cities.split(",")
)

COUNT = len(NAMES) * len(CITIES)


@dataclass(frozen=True)
class ProgramBank:
    location_id: int
    name: str
    city: str
    state: str


def program_bank(location_id: int) -> ProgramBank:
    """The bank of an id from FIRST_ID on, below FIRST_ID + COUNT."""
    kind, place = divmod(location_id - FIRST_ID, len(CITIES))
    city, state = CITIES[place]
    return ProgramBank(location_id, NAMES[kind].format(city), city, state)
